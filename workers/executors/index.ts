/**
 * Executors of buybacks (`BuybackExecutor` in shared/payments). `record` leaves buying to the operator; `jupiter` swaps
 * USDC for the token. Neither keeps state: everything that must survive a crash is in the batch.
 *
 * Sources: dev.jup.ag, "Swap API" (version 2, path "Router": the caller makes, signs and sends the transaction), and
 * solana.com, "Retrying Transactions".
 */
import { unitNanoUsd } from "#money";
import { type BuybackExecutor, buybackConfig, networkOf, walletOf } from "#payments";
import type { Clock } from "#platform/clock";
import { type Config, configError } from "#platform/config";
import { createJupiter, type JupiterOptions } from "./jupiter/index.ts";

export type Executor = BuybackExecutor & { readonly close: () => Promise<void> };

/** The executor that the configuration names. Throws `ConfigError` if a setting that it needs is missing. */
export const createExecutor = async ({ config, clock }: { config: Config; clock: Clock }): Promise<Executor> =>
  config.BUYBACK_EXECUTOR === "jupiter" ? createJupiter(await jupiterOptions(config), clock) : recordOnly;

/** The batch is the record. One that another executor has sent a transaction for may be bought already. */
const recordOnly: Executor = {
  name: "record",
  async execute({ sent }) {
    if (sent) throw new Error(`${sent.signature} was sent for it: only the executor that sent it knows the outcome`);
    return { kind: "recorded" };
  },
  close: async () => {},
};

const invalid = (fault: string) => configError(`${fault}: BUYBACK_EXECUTOR is jupiter`);
const missing = (name: string) => invalid(`${name} is missing`);

async function jupiterOptions(config: Config): Promise<JupiterOptions> {
  const { BUYBACK_WALLET_KEY, SOLANA_RPC_URL } = config;
  if (BUYBACK_WALLET_KEY === undefined) throw missing("BUYBACK_WALLET_KEY");
  if (SOLANA_RPC_URL === undefined) throw missing("SOLANA_RPC_URL");
  // A batch of less than one unit of USDC could never be bought.
  if (buybackConfig(config).minimumNanoUsd < unitNanoUsd) throw invalid("BUYBACK_MINIMUM_USD is less than 0.000001");
  const usdc = config.X402_ASSET ?? networkOf(config.X402_NETWORK).usdc;
  if (usdc === undefined) throw missing("X402_ASSET");
  return {
    baseUrl: config.JUPITER_BASE_URL,
    apiKey: config.JUPITER_API_KEY,
    programs: config.JUPITER_PROGRAMS.split(",").map((each) => each.trim()),
    rpcUrl: SOLANA_RPC_URL,
    wallet: await walletOf(BUYBACK_WALLET_KEY, "BUYBACK_WALLET_KEY"),
    usdc,
    slippageBps: config.BUYBACK_SLIPPAGE_BPS,
  };
}
