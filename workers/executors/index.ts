import type { BuybackExecutor } from "#payments";
import type { Clock } from "#platform/clock";
import { createJupiter, type JupiterOptions } from "./jupiter/index.ts";
import { createRecord } from "./record.ts";

/**
 * What may execute a buyback (`BuybackExecutor` in shared/payments): `record` leaves it to the operator, `jupiter` buys.
 *
 * Neither has a memory of its own: everything that must outlive a crash is in the batch that they are given. `jupiter`
 * follows developers.jup.ag, "Swap API" (`/quote`, `/swap`), and Solana's "Retrying transactions".
 */
export interface Executor extends BuybackExecutor {
  close(): Promise<void>;
}

/** Without options for Jupiter, buybacks are only recorded. Throws for a key that is none. */
export const createExecutor = async (deps: {
  readonly jupiter?: JupiterOptions | undefined;
  readonly clock: Clock;
}): Promise<Executor> => (deps.jupiter ? createJupiter(deps.jupiter, deps.clock) : createRecord());
