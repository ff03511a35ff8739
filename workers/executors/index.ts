/**
 * Executors of buybacks (`BuybackExecutor` in shared/payments). `record` leaves buying to the operator; `jupiter` swaps
 * USDC for the token. Neither keeps state: everything that must survive a crash is in the batch.
 *
 * Sources: dev.jup.ag, "Swap API" (version 2, path "Router": the caller makes, signs and sends the transaction), and
 * solana.com, "Retrying Transactions".
 */
import type { BuybackExecutor } from "#payments";
import type { Clock } from "#platform/clock";
import type { Config } from "#platform/config";
import { createJupiter } from "./jupiter/index.ts";

export type Executor = BuybackExecutor & { readonly close: () => Promise<void> };

/** The executor that the configuration names. Throws `ConfigError` if a setting that it needs is missing. */
export const createExecutor = async ({ config, clock }: { config: Config; clock: Clock }): Promise<Executor> =>
  config.BUYBACK_EXECUTOR === "jupiter" ? createJupiter(config, clock) : recordOnly;

/** The batch itself is the record. If another executor sent a transaction for it, the tokens may already be bought. */
const recordOnly: Executor = {
  name: "record",
  async execute({ sent }) {
    if (sent) throw new Error(`${sent.signature} was sent for it: only the executor that sent it knows the outcome`);
    return { kind: "recorded" };
  },
  close: async () => {},
};
