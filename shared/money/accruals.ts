import type { mongo } from "mongoose";
import { answered } from "#platform/mongo";
import type { Ledger, StoredEntry } from "./ledger.ts";

/** What no batch has yet. */
export interface Accrued {
  readonly token: string;
  readonly nanoUsd: bigint;
  readonly entries: number;
}

/** Entries that a batch may claim. */
export interface Claimable {
  readonly ids: readonly string[];
  readonly nanoUsd: bigint;
}

// As the index says it: `null` alone would match the entries that have no accrual.
const unclaimed = { "buyback.batch": { $type: "null" } } as mongo.Filter<StoredEntry>;
// The index is one by token: without any, every entry that ever was would be looked at.
const ofAnyToken = { ...unclaimed, "buyback.token": { $gt: "" } } as mongo.Filter<StoredEntry>;

/** The buybacks that the ledger's entries carry. `batch` is the one field of the ledger that changes, and it does so once. */
export function createAccruals({ ledger }: { ledger: Ledger }) {
  const { collection } = ledger;

  async function accrued(): Promise<Accrued[]> {
    const group = { _id: "$buyback.token", nanoUsd: { $sum: "$buyback.nanoUsd" }, entries: { $sum: 1 } };
    const sums = collection.aggregate<Omit<Accrued, "token"> & { _id: string }>([
      { $match: ofAnyToken },
      { $group: group },
      { $sort: { _id: 1 } },
    ]);
    return (await answered(sums.toArray())).map(({ _id, nanoUsd, entries }) => ({
      token: _id,
      nanoUsd,
      entries: Number(entries),
    }));
  }

  /** Only what no failover can take back. */
  async function claimable(token: string, limit: number): Promise<Claimable> {
    const found = collection.find(
      { ...unclaimed, "buyback.token": token },
      { projection: { buyback: 1 }, limit, readConcern: { level: "majority" } },
    );
    const entries = await answered(found.toArray());
    return {
      ids: entries.map(({ _id }) => _id),
      nanoUsd: entries.reduce((sum, { buyback }) => sum + (buyback?.nanoUsd ?? 0n), 0n),
    };
  }

  /** Doing it again changes nothing. */
  async function claim(ids: readonly string[], batch: string): Promise<void> {
    const these = { ...unclaimed, _id: { $in: [...ids] } } as mongo.Filter<StoredEntry>;
    await answered(collection.updateMany(these, { $set: { "buyback.batch": batch } }));
  }

  return { accrued, claimable, claim };
}
