import type { Clock } from "#platform/clock";
import type { Config } from "#platform/config";
import { jupiterOptions } from "./config.ts";
import type { Executor } from "./executor.ts";
import { createJupiter } from "./jupiter/index.ts";
import { createRecord } from "./record.ts";

/**
 * What may execute a buyback (`BuybackExecutor` in shared/payments): `record` leaves it to the operator, `jupiter` buys.
 *
 * Neither has a memory of its own: everything that must outlive a crash is in the batch that they are given. `jupiter`
 * follows dev.jup.ag, "Swap API" (version 2, path "Router": the caller makes, signs and sends the transaction), and
 * solana.com, "Retrying Transactions".
 */
export type { Executor } from "./executor.ts";

/** The one that the configuration names. Throws `ConfigError` where it lacks something. */
export const createExecutor = async (deps: { readonly config: Config; readonly clock: Clock }): Promise<Executor> =>
  deps.config.BUYBACK_EXECUTOR === "jupiter"
    ? createJupiter(await jupiterOptions(deps.config), deps.clock)
    : createRecord();
