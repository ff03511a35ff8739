import type { BuybackExecutor } from "#payments";

export interface Executor extends BuybackExecutor {
  close(): Promise<void>;
}
