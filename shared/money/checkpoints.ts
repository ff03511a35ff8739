import type { ClientSession, mongo as driver } from "mongoose";
import { longRunning, scatter } from "#platform/mongo/collection";
import { createAccountSums, type Range, type Sums } from "./account-sums.ts";
import type { MoneyDeps } from "./deps.ts";
import { accountIndex, type StoredEntry, uncounted, uncountedIndex } from "./ledger.ts";

/** The entries to sum, and an index that begins with the account. */
interface Source {
  readonly filter: driver.Filter<StoredEntry>;
  readonly hint: driver.IndexSpecification;
}

const everyEntry: Source = { filter: {}, hint: accountIndex };
const sinceCheckpoint: Source = { filter: uncounted as object as driver.Filter<StoredEntry>, hint: uncountedIndex };

/** A transaction takes about 30 ms. */
const batchSize = 1_000;
/** A run takes about 10 s. The next one does the rest. */
const maxBatches = 300;

export type Checkpoints = ReturnType<typeof createCheckpoints>;

/**
 * The collection `checkpoints`: the sum of each account's entries that are marked `checkpointed`.
 * One transaction marks entries and adds them, so that in any snapshot each entry is counted once (docs/adr/0003). If
 * two processes count the same entry, the transaction of one is aborted.
 */
export function createCheckpoints({ mongo, ledger }: MoneyDeps) {
  const stored = createAccountSums(mongo, "checkpoints");

  async function countSome(session: ClientSession): Promise<number> {
    const { filter, hint } = sinceCheckpoint;
    const entries = await ledger.collection
      .find(filter, {
        session,
        hint,
        limit: batchSize,
        projection: { account: 1, amount: 1 },
        ...longRunning,
        ...scatter("checkpoint"),
      })
      .toArray();
    if (entries.length === 0) return 0;
    const ids = entries.map(({ _id }) => _id);
    const mark = { $set: { checkpointed: true } };
    const account = { $in: [...new Set(entries.map((entry) => entry.account))] };
    const these = { ...filter, account, _id: { $in: ids } };
    const { modifiedCount } = await ledger.collection.updateMany(these, mark, {
      session,
      hint: { _id: 1 },
      ...longRunning,
    });
    if (modifiedCount !== ids.length) throw new Error(`only ${modifiedCount} of ${ids.length} entries could be marked`);
    await stored.addEntries(entries, session);
    return entries.length;
  }

  /** Returns the number of counted entries. Safe in any number of concurrent processes. */
  async function checkpoint(signal?: AbortSignal): Promise<number> {
    let counted = 0;
    for (let batches = 0; batches < maxBatches && !signal?.aborted; batches++) {
      const some = await mongo.inTransaction(countSome);
      counted += some;
      if (some < batchSize) break;
    }
    return counted;
  }

  async function sumEntries({ filter, hint }: Source, account: Range, session: ClientSession): Promise<Sums> {
    const sums = ledger.collection.aggregate<{ _id: string; amount: bigint }>(
      [
        { $match: { ...filter, account } },
        { $group: { _id: "$account", amount: { $sum: "$amount" } } },
        { $match: { amount: { $ne: 0n } } },
      ],
      { session, hint, allowDiskUse: true, ...longRunning, ...scatter("check") },
    );
    return new Map((await sums.toArray()).map(({ _id, amount }) => [_id, amount]));
  }

  async function sumCheckpoints(range: Range, session: ClientSession): Promise<Sums> {
    const sums = await sumEntries(sinceCheckpoint, range, session);
    await stored.addTo(sums, range, session);
    return sums;
  }

  return {
    checkpoint,
    sumCheckpoints,
    sumEveryEntry: (range: Range, session: ClientSession) => sumEntries(everyEntry, range, session),

    /** Returns the account of the first entry after `skip` entries of a range. */
    async accountAfter(
      skip: number,
      account: Range,
      full: boolean,
      session: ClientSession,
    ): Promise<string | undefined> {
      const { filter, hint } = full ? everyEntry : sinceCheckpoint;
      const projection = { _id: 0, account: 1 } as const;
      const options = {
        session,
        hint,
        skip,
        sort: { account: 1 },
        projection,
        ...longRunning,
        ...scatter("check"),
      } as const;
      return (await ledger.collection.findOne({ ...filter, account }, options))?.account;
    },
  };
}
