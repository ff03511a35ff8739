import type { mongo } from "mongoose";
import { scatter } from "#platform/mongo/collection";
import type { MoneyDeps } from "./deps.ts";
import type { StoredEntry } from "./ledger.ts";

/** The share of charges used for buybacks, and the token if neither account nor caller chose an eligible one. */
export interface BuybackTerms {
  /** 0 to 10000. */
  readonly bps: number;
  readonly token: string;
  readonly eligible: ReadonlySet<string>;
}

export interface Accrued {
  readonly token: string;
  readonly nanoUsd: bigint;
  readonly entries: number;
}

export interface Claimable {
  readonly ids: readonly string[];
  readonly nanoUsd: bigint;
}

/** Rounds half up to a nano-USD. */
export function accrualOf(
  terms: BuybackTerms | undefined,
  chargedNanoUsd: bigint,
  chosen: string | null | undefined,
): Pick<StoredEntry, "buyback"> {
  if (!terms) return {};
  const nanoUsd = (chargedNanoUsd * BigInt(terms.bps) + 5_000n) / 10_000n;
  const token = chosen != null && terms.eligible.has(chosen) ? chosen : terms.token;
  return nanoUsd > 0n ? { buyback: { token, nanoUsd, batch: null } } : {};
}

// The filter of the partial index. `null` alone would match the entries that have no accrual.
export const unclaimed = { "buyback.batch": { $type: "null" } } as mongo.Filter<StoredEntry>;
// The index begins with the token, so the whole ledger would be scanned without a bound on it.
const unclaimedOfAnyToken = { ...unclaimed, "buyback.token": { $gt: "" } } as mongo.Filter<StoredEntry>;

/** The buybacks that ledger entries carry. */
export function createAccruals({ ledger: { collection } }: MoneyDeps) {
  async function accrued(): Promise<Accrued[]> {
    const sums = collection.aggregate<Accrued>(
      [
        { $match: unclaimedOfAnyToken },
        { $group: { _id: "$buyback.token", nanoUsd: { $sum: "$buyback.nanoUsd" }, entries: { $sum: 1 } } },
        { $sort: { _id: 1 } },
        { $project: { _id: 0, token: "$_id", nanoUsd: 1, entries: 1 } },
      ],
      scatter("buyback"),
    );
    return (await sums.toArray()).map((sum) => ({ ...sum, entries: Number(sum.entries) }));
  }

  /** Returns some entries of a token that no batch has claimed and that no failover can roll back. */
  async function claimable(token: string, limit: number): Promise<Claimable> {
    const found = collection.find(
      { ...unclaimed, "buyback.token": token },
      { projection: { buyback: 1 }, limit, readConcern: { level: "majority" }, ...scatter("buyback") },
    );
    const entries = await found.toArray();
    return {
      ids: entries.map(({ _id }) => _id),
      nanoUsd: entries.reduce((sum, { buyback }) => sum + (buyback?.nanoUsd ?? 0n), 0n),
    };
  }

  /** Assigns unclaimed entries to this batch; a second claim changes nothing. */
  async function claim(ids: readonly string[], batch: string): Promise<void> {
    const these = { ...unclaimed, _id: { $in: [...ids] } } as mongo.Filter<StoredEntry>;
    await collection.updateMany(these, { $set: { "buyback.batch": batch } }, scatter("buyback"));
  }

  return { accrued, claimable, claim };
}
