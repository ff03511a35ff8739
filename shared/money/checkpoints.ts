import type { ClientSession, mongo as driver } from "mongoose";
import { randomBase62 } from "#platform/ids";
import { type DocumentOf, longRunning, openCollection, scatter } from "#platform/mongo/collection";
import { createAccountSums, type Range, type Sums } from "./account-sums.ts";
import type { MoneyDeps } from "./deps.ts";
import { accountIndex, byId, type EntryKey, type StoredEntry, uncounted, uncountedIndex } from "./ledger.ts";

/** The entries to sum, and an index that begins with the account. */
interface Source {
  readonly filter: driver.Filter<StoredEntry>;
  readonly hint: driver.IndexSpecification;
}

const everyEntry: Source = { filter: {}, hint: accountIndex };
const sinceCheckpoint: Source = { filter: uncounted as object as driver.Filter<StoredEntry>, hint: uncountedIndex };

/** The entries that are in checkpoints and may not be marked yet. There is one document. */
const definition = {
  _id: { type: String, required: true },
  /** Random for each batch. */
  batch: { type: String, required: true },
  entries: { type: [{ _id: String, account: String }], required: true },
} as const;
type StoredBatch = DocumentOf<typeof definition, { entries: readonly EntryKey[] }>;
const only = "only";

const batchSize = 1_000;
/** A run takes about 20 s. The next one does the rest. */
const maxBatches = 300;

export type Checkpoints = ReturnType<typeof createCheckpoints>;

/**
 * The collection `checkpoints`: the sum of each account's entries that are marked `checkpointed` or in the batch of
 * `checkpointBatches`, so that in any snapshot each entry is counted once (docs/adr/0003).
 *
 * One transaction adds a batch of entries and names them as the batch. They are marked afterwards, because a transaction that
 * updates many documents of a collection with many indexes costs MongoDB 6 ten times as much. Processes end each other's
 * batches; the transaction of one is aborted if two begin one.
 */
export function createCheckpoints({ mongo, ledger }: MoneyDeps) {
  const stored = createAccountSums(mongo, "checkpoints");
  const { collection: batches } = openCollection<StoredBatch>(mongo, "checkpointBatches", definition);

  /** Adds up entries that no checkpoint counts, or returns the batch that has not ended. */
  async function beginBatch(session: ClientSession): Promise<Pick<StoredBatch, "batch" | "entries"> | undefined> {
    const begun = await batches.findOne({ _id: only }, { session });
    if (begun && begun.entries.length > 0) return begun;
    const { filter, hint } = sinceCheckpoint;
    const found = await ledger.collection
      .find(filter, {
        session,
        hint,
        limit: batchSize,
        projection: { account: 1, amount: 1 },
        ...longRunning,
        ...scatter("checkpoint"),
      })
      .toArray();
    if (found.length === 0) return undefined;
    await stored.addEntries(found, session);
    const entries = found.map(({ _id, account }) => ({ _id, account }));
    const batch = randomBase62(12);
    await batches.updateOne({ _id: only }, { $set: { batch, entries } }, { session, upsert: true });
    return { batch, entries };
  }

  async function endBatch({ batch, entries }: Pick<StoredBatch, "batch" | "entries">): Promise<void> {
    const account = { $in: [...new Set(entries.map((entry) => entry.account))] };
    const these = { ...sinceCheckpoint.filter, account, _id: { $in: entries.map(({ _id }) => _id) } };
    await ledger.collection.updateMany(these, { $set: { checkpointed: true } }, { hint: byId, ...longRunning });
    await batches.updateOne({ _id: only, batch }, { $set: { entries: [] } });
  }

  /** Returns the number of counted entries. Safe in any number of concurrent processes. */
  async function checkpoint(signal?: AbortSignal): Promise<number> {
    let counted = 0;
    for (let count = 0; count < maxBatches && !signal?.aborted; count++) {
      const begun = await mongo.inTransaction(beginBatch);
      if (!begun) break;
      await endBatch(begun);
      counted += begun.entries.length;
      if (begun.entries.length < batchSize) break;
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
    const { entries = [] } = (await batches.findOne({ _id: only }, { session })) ?? {};
    const { filter, hint } = sinceCheckpoint;
    const outside = entries.length > 0 ? { ...filter, _id: { $nin: entries.map(({ _id }) => _id) } } : filter;
    const sums = await sumEntries({ filter: outside, hint }, range, session);
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
