import type { ClientSession } from "mongoose";
import { type DocumentOf, longRunning, openCollection, scatter } from "#platform/collection";
import type { Range, Sums } from "../checkpoints.ts";
import type { MoneyDeps } from "../deps.ts";
import { archivable } from "../ledger.ts";

const definition = {
  /** The account. */
  _id: { type: String, required: true },
  amount: { type: BigInt, required: true },
} as const;
type StoredSum = DocumentOf<typeof definition>;

export type ArchivedSums = ReturnType<typeof createArchivedSums>;

/**
 * The collection `archivedSums`: the sum of each account's entries that are in the archive and no longer in the ledger.
 * One transaction deletes entries and adds them to the sums, so in any snapshot each entry is counted once.
 */
export function createArchivedSums({ mongo, ledger }: MoneyDeps) {
  const { collection } = openCollection<StoredSum>(mongo, "archivedSums", definition);

  async function moveSome(ids: readonly string[], accounts: readonly string[], session: ClientSession) {
    // The accounts let a sharded cluster query only the shards that hold them.
    const these = { _id: { $in: [...ids] }, account: { $in: [...accounts] }, ...archivable } as object;
    const entries = await ledger.collection
      .find(these, { session, projection: { account: 1, amount: 1 }, ...longRunning })
      .toArray();
    if (entries.length === 0) return;
    const { deletedCount } = await ledger.collection.deleteMany(these, { session, ...longRunning });
    if (deletedCount !== entries.length) throw new Error(`${deletedCount} of ${entries.length} entries were deleted`);
    const sums: Sums = new Map();
    for (const { account, amount } of entries) sums.set(account, (sums.get(account) ?? 0n) + amount);
    const changes = [...sums].map(([_id, amount]) => ({
      updateOne: { filter: { _id }, update: { $inc: { amount } }, upsert: true },
    }));
    await collection.bulkWrite(changes, { session, ordered: false, ...longRunning });
  }

  return {
    /** Deletes archived entries that are still in the ledger, and adds them to the sums. */
    async move(lines: readonly { readonly id: string; readonly account: string }[]): Promise<void> {
      const ids = lines.map(({ id }) => id);
      const accounts = [...new Set(lines.map(({ account }) => account))];
      await mongo.inTransaction((session) => moveSome(ids, accounts, session));
    },

    /** Adds the sums of a range of accounts to those of the ledger. Removes zeros. */
    async addTo(sums: Sums, range: Range, session: ClientSession): Promise<void> {
      for await (const { _id, amount } of collection.find(
        { _id: range },
        { session, ...longRunning, ...scatter("check") },
      )) {
        const sum = (sums.get(_id) ?? 0n) + amount;
        if (sum === 0n) sums.delete(_id);
        else sums.set(_id, sum);
      }
    },

    /** Returns the account of the first sum after the skipped ones of a range. */
    async accountAfter(skip: number, _id: Range, session: ClientSession): Promise<string | undefined> {
      return (
        await collection.findOne({ _id }, { session, skip, sort: { _id: 1 }, ...longRunning, ...scatter("check") })
      )?._id;
    },
  };
}
