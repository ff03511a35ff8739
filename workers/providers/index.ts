/** Every kind of upstream that the catalog can name. A new one: a folder beside these, a line here, and its name in the catalog's schema. */
import type { Upstream } from "#catalog";
import type { Clock } from "#platform/clock";
import { createLocal } from "./local/index.ts";
import { createOpenai } from "./openai/index.ts";
import type { Provider } from "./provider.ts";

export {
  type GenerationCall,
  type InputFile,
  type JsonObject,
  type Provider,
  UpstreamFailure,
} from "./provider.ts";

/** An upstream with the environment's values. */
export interface Target {
  readonly baseUrl: string;
  readonly apiKey: string | undefined;
  readonly concurrency: number;
  /** Always tell it to keep nothing. */
  readonly storesAnswers: boolean;
}

type Factory = (target: Target, deps: { clock: Clock }) => Provider;

export const providers: Readonly<Record<Upstream["provider"], Factory>> = {
  openai: createOpenai,
  local: (_, deps) => createLocal(deps),
};
