import { createKeyPairSignerFromBytes, getBase58Encoder, type KeyPairSigner } from "@solana/kit";
import { networkOf } from "#payments";
import { type Config, ConfigError } from "#platform/config";
import type { JupiterOptions } from "./jupiter/index.ts";

const wrong = (line: string) => new ConfigError(`The configuration is not complete.\n  ${line}`);
const missing = (name: string) => wrong(`${name} is missing: BUYBACK_EXECUTOR is jupiter`);

/** Throws `ConfigError` for what Jupiter cannot do without. */
export async function jupiterOptions(config: Config): Promise<JupiterOptions> {
  const { BUYBACK_WALLET_KEY, SOLANA_RPC_URL } = config;
  if (BUYBACK_WALLET_KEY === undefined) throw missing("BUYBACK_WALLET_KEY");
  if (SOLANA_RPC_URL === undefined) throw missing("SOLANA_RPC_URL");
  const usdc = config.X402_ASSET ?? networkOf(config.X402_NETWORK).usdc;
  if (usdc === undefined) throw missing("X402_ASSET");
  return {
    baseUrl: config.JUPITER_BASE_URL,
    apiKey: config.JUPITER_API_KEY,
    rpcUrl: SOLANA_RPC_URL,
    wallet: await walletOf(BUYBACK_WALLET_KEY),
    usdc,
    slippageBps: config.BUYBACK_SLIPPAGE_BPS,
  };
}

async function walletOf(key: string): Promise<KeyPairSigner> {
  try {
    const bytes = key.trimStart().startsWith("[") ? JSON.parse(key) : getBase58Encoder().encode(key.trim());
    return await createKeyPairSignerFromBytes(Uint8Array.from(bytes as Iterable<number>));
  } catch {
    // The cause may show the key.
    throw wrong("BUYBACK_WALLET_KEY: is not a secret key of 64 bytes");
  }
}
