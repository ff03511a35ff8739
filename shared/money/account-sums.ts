import type { ClientSession } from "mongoose";
import { type DocumentOf, longRunning, openCollection, scatter } from "#platform/mongo/collection";
import type { Mongo } from "#platform/mongo/connection";
import type { StoredEntry } from "./ledger.ts";

/** A range of account ids. */
export interface Range {
  readonly $gt: string;
  readonly $lte?: string;
}

/** Sums by account, without zeros. */
export type Sums = Map<string, bigint>;

export type AccountSums = ReturnType<typeof createAccountSums>;

const definition = {
  /** The account. */
  _id: { type: String, required: true },
  amount: { type: BigInt, required: true },
} as const;

function add(sums: Sums, account: string, amount: bigint): void {
  const sum = (sums.get(account) ?? 0n) + amount;
  if (sum === 0n) sums.delete(account);
  else sums.set(account, sum);
}

/** A collection with the sum of some entries of each account. A missing sum means zero. */
export function createAccountSums(mongo: Mongo, name: string) {
  const { collection } = openCollection<DocumentOf<typeof definition>>(mongo, name, definition);

  return {
    async addEntries(entries: readonly Pick<StoredEntry, "account" | "amount">[], session: ClientSession) {
      const sums: Sums = new Map();
      for (const { account, amount } of entries) add(sums, account, amount);
      if (sums.size === 0) return;
      const changes = [...sums].map(([_id, amount]) => ({
        updateOne: { filter: { _id }, update: { $inc: { amount } }, upsert: true },
      }));
      await collection.bulkWrite(changes, { session, ordered: false, ...longRunning });
      // Spent payment accounts are removed, and so are their sums.
      await collection.deleteMany({ _id: { $in: [...sums.keys()] }, amount: 0n }, { session });
    },

    /** Adds the stored sums of a range of accounts to others. */
    async addTo(sums: Sums, range: Range, session: ClientSession): Promise<void> {
      const options = { session, ...longRunning, ...scatter("check") };
      for await (const { _id, amount } of collection.find({ _id: range }, options)) add(sums, _id, amount);
    },

    /** Returns the account of the first sum after `skip` sums of a range. */
    async accountAfter(skip: number, _id: Range, session: ClientSession): Promise<string | undefined> {
      const options = { session, skip, sort: { _id: 1 }, ...longRunning, ...scatter("check") } as const;
      return (await collection.findOne({ _id }, options))?._id;
    },
  };
}
