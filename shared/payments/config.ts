import {
  type Address,
  createKeyPairSignerFromBytes,
  getBase58Encoder,
  isAddress,
  type KeyPairSigner,
} from "@solana/kit";
import { parseUsd } from "#money";
import type { Config } from "#platform/config";
import { configError } from "#platform/config-error";

/** The networks with a short name. A CAIP-2 id is `solana:` and the first 32 characters of the genesis block's hash. */
const named = {
  mainnet: { id: "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp", usdc: "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v" },
  devnet: { id: "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1", usdc: "4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU" },
  testnet: { id: "solana:4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z", usdc: "4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU" },
} as const;

/** Finds a network by a short name or a CAIP-2 id. `usdc` is its USDC mint, undefined for a private network. */
export function networkOf(name: string) {
  const known = Object.entries(named).find(([short, { id }]) => name === short || name === id);
  return known ? known[1] : { id: name as `solana:${string}`, usdc: undefined };
}

export const isSignature = (text: string): boolean => /^[1-9A-HJ-NP-Za-km-z]{64,88}$/.test(text);

/** Returns true if a chain with this genesis block is the network. */
export const beganWith = (network: string, genesisHash: string): boolean =>
  network === `solana:${genesisHash.slice(0, 32)}`;

/** One for the fee payer and one for the payer. */
const maxRequiredSignatures = 2;

function wallet(text: string, name: string): Address {
  if (!isAddress(text)) throw configError(`${name}: must be a Solana address`);
  return text;
}

/** `fetch` refuses an address with a password, and its error would reveal it. */
export function withoutPassword(url: string, name: string): string {
  const { username, password } = new URL(url);
  if (username !== "" || password !== "") throw configError(`${name}: must not contain a user or password`);
  return url;
}

export type SolanaConfig = NonNullable<ReturnType<typeof solanaConfig>>;

/** Returns undefined if payments are switched off. Workers only read the chain and need no facilitator. */
export function solanaConfig(config: Config) {
  const { X402_PAY_TO, SOLANA_RPC_URL, X402_FEE_PAYER_KEY, X402_FACILITATOR_URL } = config;
  if (X402_PAY_TO === undefined) return undefined;
  if (SOLANA_RPC_URL === undefined) throw configError("SOLANA_RPC_URL is missing: payments by x402 need it");
  if (X402_FEE_PAYER_KEY !== undefined && X402_FACILITATOR_URL !== undefined)
    throw configError("X402_FEE_PAYER_KEY and X402_FACILITATOR_URL are both set: only one of them can settle payments");
  if (X402_FACILITATOR_URL !== undefined) withoutPassword(X402_FACILITATOR_URL, "X402_FACILITATOR_URL");
  const { id: network, usdc } = networkOf(config.X402_NETWORK);
  const asset = config.X402_ASSET ?? usdc;
  if (asset === undefined) throw configError(`X402_ASSET is missing: no mint of USDC is known for ${network}`);
  return {
    network,
    asset: wallet(asset, "X402_ASSET"),
    payTo: wallet(X402_PAY_TO, "X402_PAY_TO"),
    rpcUrl: withoutPassword(SOLANA_RPC_URL, "SOLANA_RPC_URL"),
    feePayerKey: X402_FEE_PAYER_KEY,
    facilitatorUrl: X402_FACILITATOR_URL,
    facilitatorToken: config.X402_FACILITATOR_TOKEN,
    /** The maximum that a payment may cost its fee payer. */
    caps: {
      maxComputeUnits: config.X402_MAX_COMPUTE_UNITS,
      maxPriorityFeeMicroLamports: config.X402_MAX_PRIORITY_FEE,
      maxRequiredSignatures,
    },
  };
}

export type BuybackConfig = ReturnType<typeof buybackConfig>;

export function buybackConfig(config: Config) {
  const { BUYBACK_BPS: bps, BUYBACK_TOKENS = "", BUYBACK_MINIMUM_USD } = config;
  const token = wallet(config.BUYBACK_TOKEN, "BUYBACK_TOKEN");
  const listed = BUYBACK_TOKENS.split(",").filter((each) => each !== "");
  const eligible = new Set<string>([token, ...listed.map((each) => wallet(each.trim(), "BUYBACK_TOKENS"))]);
  return {
    /** Nothing accrues if this is undefined. */
    terms: bps > 0 ? { bps, token, eligible } : undefined,
    /** The mints that accounts and callers may choose. */
    eligible,
    minimumNanoUsd: parseUsd(BUYBACK_MINIMUM_USD) ?? 0n,
  };
}

/** Parses base58, or the JSON array that Solana's own tool writes. Throws `ConfigError` naming the variable. */
export async function walletOf(key: string, variable: string): Promise<KeyPairSigner> {
  try {
    const bytes = key.trimStart().startsWith("[") ? JSON.parse(key) : getBase58Encoder().encode(key.trim());
    return await createKeyPairSignerFromBytes(Uint8Array.from(bytes as Iterable<number>));
  } catch {
    // The cause may contain the key.
    const form = "a secret key of 64 bytes, in base58 or as the JSON of a key file";
    throw configError(`${variable}: is not ${form}`);
  }
}

/**
 * Returns the wallet that settles payments here, or the facilitator that does so remotely. Needed by processes that
 * quote. Throws `ConfigError` naming the variable.
 */
export async function settlerOf({ payTo, feePayerKey, facilitatorUrl }: SolanaConfig) {
  if (facilitatorUrl !== undefined) return { facilitatorUrl };
  if (feePayerKey === undefined)
    throw configError("X402_FEE_PAYER_KEY or X402_FACILITATOR_URL is missing: one of them settles payments");
  const feePayer = await walletOf(feePayerKey, "X402_FEE_PAYER_KEY");
  if (feePayer.address === payTo)
    throw configError("X402_FEE_PAYER_KEY: is the key of X402_PAY_TO; use a separate wallet that holds only SOL");
  return { feePayer };
}
