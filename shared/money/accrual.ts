import type { StoredEntry } from "./ledger.ts";

/** How much of what is charged buys back, and which token where nobody chose one. */
export interface BuybackTerms {
  /** 0 to 10000. */
  readonly bps: number;
  readonly token: string;
}

/** Rounded half up to a nano-USD. */
export function accrualOf(
  terms: BuybackTerms | undefined,
  chargedNanoUsd: bigint,
  chosen: string | null | undefined,
): Pick<StoredEntry, "buyback"> {
  if (!terms) return {};
  const nanoUsd = (chargedNanoUsd * BigInt(terms.bps) + 5_000n) / 10_000n;
  return nanoUsd > 0n ? { buyback: { token: chosen ?? terms.token, nanoUsd, batch: null } } : {};
}
