import type { ClientSession } from "mongoose";
import { longRunning } from "#platform/collection";
import { createAccountSums } from "../account-sums.ts";
import type { MoneyDeps } from "../deps.ts";
import { archivable } from "../ledger.ts";

export type ArchivedSums = ReturnType<typeof createArchivedSums>;

/**
 * The collection `archivedSums`: the sum of each account's entries that are in the archive and no longer in the ledger.
 * One transaction deletes entries and adds them to the sums, so in any snapshot each entry is counted once.
 */
export function createArchivedSums({ mongo, ledger }: MoneyDeps) {
  const stored = createAccountSums(mongo, "archivedSums");

  async function moveSome(ids: readonly string[], accounts: readonly string[], session: ClientSession) {
    // The accounts let a sharded cluster query only the shards that hold them.
    const these = { _id: { $in: [...ids] }, account: { $in: [...accounts] }, ...archivable } as object;
    const entries = await ledger.collection
      .find(these, { session, projection: { account: 1, amount: 1 }, ...longRunning })
      .toArray();
    if (entries.length === 0) return;
    const { deletedCount } = await ledger.collection.deleteMany(these, { session, ...longRunning });
    if (deletedCount !== entries.length) throw new Error(`${deletedCount} of ${entries.length} entries were deleted`);
    await stored.addEntries(entries, session);
  }

  return {
    ...stored,
    /** Deletes archived entries that are still in the ledger, and adds them to the sums. */
    async move(lines: readonly { readonly id: string; readonly account: string }[]): Promise<void> {
      const ids = lines.map(({ id }) => id);
      const accounts = [...new Set(lines.map(({ account }) => account))];
      await mongo.inTransaction((session) => moveSome(ids, accounts, session));
    },
  };
}
