import { unitNanoUsd } from "#money";
import { buybackConfig, networkOf, walletOf } from "#payments";
import { type Config, configError } from "#platform/config";
import type { JupiterOptions } from "./jupiter/index.ts";

const wrong = (what: string) => configError(`${what}: BUYBACK_EXECUTOR is jupiter`);
const missing = (name: string) => wrong(`${name} is missing`);

/** Throws `ConfigError` for what Jupiter cannot do without. */
export async function jupiterOptions(config: Config): Promise<JupiterOptions> {
  const { BUYBACK_WALLET_KEY, SOLANA_RPC_URL } = config;
  if (BUYBACK_WALLET_KEY === undefined) throw missing("BUYBACK_WALLET_KEY");
  if (SOLANA_RPC_URL === undefined) throw missing("SOLANA_RPC_URL");
  // A batch of less than a unit could never be bought.
  if (buybackConfig(config).minimumNanoUsd < unitNanoUsd) throw wrong("BUYBACK_MINIMUM_USD is less than 0.000001");
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
