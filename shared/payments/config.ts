import { type Address, address, isAddress } from "@solana/kit";
import { type BuybackTerms, parseUsd } from "#money";
import { type Config, configError } from "#platform/config";
import { type Network, networkOf } from "./network.ts";

export interface X402 {
  readonly network: Network["id"];
  readonly asset: Address;
  readonly payTo: Address;
  readonly rpcUrl: string;
  /** Who settles; undefined where nobody does: workers only look at the chain. */
  readonly facilitator:
    | { readonly kind: "own"; readonly feePayerKey: string }
    | { readonly kind: "remote"; readonly url: string; readonly token: string | undefined }
    | undefined;
  readonly caps: Caps;
}

/** What the fee payer may be made to pay for. */
export interface Caps {
  readonly maxComputeUnits: number;
  readonly maxPriorityFeeMicroLamports: number;
  readonly maxRequiredSignatures: number;
}

export interface BuybackConfig {
  /** Undefined: nothing accrues. */
  readonly terms: BuybackTerms | undefined;
  readonly eligible: ReadonlySet<string>;
  readonly minimumNanoUsd: bigint;
}

/** The fee payer's, and the payer's. */
const signatures = 2;

function wallet(text: string, name: string): Address {
  if (!isAddress(text)) throw configError(`${name}: must be an address on Solana`);
  return address(text);
}

/** Nothing is ever asked at an address with a password, and the error that says so shows it. */
export function withoutPassword(url: string, name: string): string {
  const { username, password } = new URL(url);
  if (username !== "" || password !== "") throw configError(`${name}: must be without a user and a password`);
  return url;
}

/** Undefined: payments are switched off. */
export function x402Config(config: Config): X402 | undefined {
  const { X402_PAY_TO, SOLANA_RPC_URL, X402_FEE_PAYER_KEY, X402_FACILITATOR_URL } = config;
  if (X402_PAY_TO === undefined) return undefined;
  if (SOLANA_RPC_URL === undefined) throw configError("SOLANA_RPC_URL is missing: payments by x402 need it");
  if (X402_FEE_PAYER_KEY !== undefined && X402_FACILITATOR_URL !== undefined)
    throw configError("X402_FEE_PAYER_KEY and X402_FACILITATOR_URL: one of them settles payments, not both");
  const { id, usdc } = networkOf(config.X402_NETWORK);
  const asset = config.X402_ASSET ?? usdc;
  if (asset === undefined) throw configError(`X402_ASSET is missing: ${id} has no USDC that is known here`);
  return {
    network: id,
    asset: wallet(asset, "X402_ASSET"),
    payTo: wallet(X402_PAY_TO, "X402_PAY_TO"),
    rpcUrl: SOLANA_RPC_URL,
    facilitator:
      X402_FEE_PAYER_KEY !== undefined
        ? { kind: "own", feePayerKey: X402_FEE_PAYER_KEY }
        : X402_FACILITATOR_URL !== undefined
          ? {
              kind: "remote",
              url: withoutPassword(X402_FACILITATOR_URL, "X402_FACILITATOR_URL"),
              token: config.X402_FACILITATOR_TOKEN,
            }
          : undefined,
    caps: {
      maxComputeUnits: config.X402_MAX_COMPUTE_UNITS,
      maxPriorityFeeMicroLamports: config.X402_MAX_PRIORITY_FEE,
      maxRequiredSignatures: signatures,
    },
  };
}

export function buybackConfig(config: Config): BuybackConfig {
  const { BUYBACK_BPS: bps, BUYBACK_TOKEN: token, BUYBACK_TOKENS = "", BUYBACK_MINIMUM_USD } = config;
  if (bps > 0 && token === undefined) throw configError("BUYBACK_TOKEN is missing: BUYBACK_BPS is not 0");
  const listed = BUYBACK_TOKENS.split(",").filter((each) => each !== "");
  const own = token === undefined ? [] : [wallet(token, "BUYBACK_TOKEN")];
  return {
    terms: bps > 0 && token !== undefined ? { bps, token } : undefined,
    eligible: new Set([...own, ...listed.map((each) => wallet(each.trim(), "BUYBACK_TOKENS"))]),
    minimumNanoUsd: parseUsd(BUYBACK_MINIMUM_USD) ?? 0n,
  };
}
