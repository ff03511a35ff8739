import type { Collection, mongo as driver } from "mongoose";
import { findPage, type Page, scatter } from "#platform/mongo/collection";
import type { Uses } from "#platform/uses";
import { type BatchStatus, openIndex, openStatuses, type StoredBatch } from "./collections.ts";

/** A batch that a process works at has a `dueAt` later than this long ago. Any other waits for its turn. */
export const turnMs = 60_000;
/** Batches that are read at most, the last due first. Those that processes work at are among them. */
const maxRead = 2_000;

/** Times in Unix milliseconds. */
export interface OpenBatches {
  /** The creation of the oldest batch of each status. */
  readonly oldestAt: Readonly<Partial<Record<BatchStatus, number>>>;
  /** Since when a batch has recorded no line, among those in progress that are not paused. */
  readonly stalledSince: number | undefined;
}

const isOpen = { dueAt: { $exists: true } };

export interface OpenBatchQuery extends Page {
  readonly account?: string | undefined;
  readonly status?: BatchStatus | undefined;
}

/** Without the lists of parts, which may be long. */
const listed = { outputs: 0, failures: 0, recorded: 0, problems: 0, metadata: 0 } as const;
export type ListedBatch = Omit<StoredBatch, keyof typeof listed>;

/** Lists batches that have not ended, oldest first. An account has at most `maxOpenBatches` of them. */
export function listOpenBatches(
  collection: Collection<StoredBatch>,
  { account, status, ...page }: OpenBatchQuery,
): Promise<ListedBatch[]> {
  const filter = { status: { $in: status ? [status] : [...openStatuses] }, ...isOpen } as driver.Filter<StoredBatch>;
  const ofAccount = { owner: { account } as driver.Filter<StoredBatch>, hint: { account: 1, dueAt: 1 } };
  const ofAll = { hint: openIndex, ...scatter("open batches") };
  return findPage(
    collection,
    { ...page, order: "asc" },
    {
      ...(account === undefined ? ofAll : ofAccount),
      filter,
      projection: listed,
      unknown: "there is no batch",
    },
  ) as unknown as Promise<ListedBatch[]>;
}

/** Finds how old the batches are that have not ended, with a bounded number of reads. */
export async function findOpenBatches({
  collection,
  clock,
}: Uses<"clock"> & { collection: Collection<StoredBatch> }): Promise<OpenBatches> {
  async function oldestOf(status: BatchStatus): Promise<readonly (readonly [BatchStatus, number])[]> {
    const found = await collection.findOne({ status, ...isOpen } as driver.Filter<StoredBatch>, {
      ...scatter("open batches"),
      hint: openIndex,
      sort: { createdAt: 1 },
      projection: { createdAt: 1 },
    });
    return found ? [[status, found.createdAt.getTime()]] : [];
  }

  /** Batches that wait for their turn are not stalled, unless no process works at any. */
  async function stalledSince(): Promise<number | undefined> {
    const isWorkedAt = { $gt: ["$dueAt", new Date(clock.now() - turnMs)] };
    const groups = await collection
      .aggregate<{ _id: boolean; since: Date | null }>(
        [
          { $match: isOpen },
          { $sort: { dueAt: -1 } },
          { $limit: maxRead },
          { $match: { status: "in_progress", paused: { $exists: false } } },
          { $group: { _id: isWorkedAt, since: { $min: "$progressAt" } } },
        ],
        { ...scatter("open batches"), hint: { dueAt: 1 } },
      )
      .toArray();
    return (groups.find(({ _id }) => _id) ?? groups[0])?.since?.getTime();
  }

  const [since, ...oldest] = await Promise.all([stalledSince(), ...openStatuses.map(oldestOf)]);
  return { oldestAt: Object.fromEntries(oldest.flat()), stalledSince: since };
}
