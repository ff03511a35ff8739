import type { ClientSession } from "mongoose";
import { dayMs } from "#platform/clock";
import { inBatches, longRunning, scatter } from "#platform/mongo/collection";
import type { AccountSums } from "../account-sums.ts";
import { unclaimed } from "../accruals.ts";
import type { MoneyDeps } from "../deps.ts";
import type { LeaseClosing } from "../leases/closing.ts";
import { archivable, archiveIndex } from "../ledger.ts";
import {
  type ArchivedLine,
  type Contents,
  createArchiveFile,
  type ExactEntry,
  exactTypes,
  readArchiveFile,
} from "./file.ts";
import type { ArchiveObjects } from "./objects.ts";
import { type ArchiveParts, isWritten, type Part, type WrittenPart } from "./parts.ts";

/** Bounds on the memory of a run. */
export interface ArchiveSizes {
  readonly partEntries: number;
  readonly partBytes: number;
  readonly batchEntries: number;
}
const defaultSizes: ArchiveSizes = { partEntries: 25_000, partBytes: 32 * 1024 * 1024, batchEntries: 1_000 };

/** Number of concurrent transactions. Each handles different accounts, so that none waits for another. */
const deletedAtOnce = 4;

/** No entry is archived sooner. No call is captured this late, so none is captured again after its entry moved. */
export const archivableMs = 30 * dayMs;

/** A range of entries within closed months; `before` is exclusive. */
interface Span {
  readonly from: Date;
  readonly before: Date;
}

/**
 * Moves old entries of calls and uploads to storage (docs/adr/0021): write a file -> read it back -> record it -> delete
 * its entries from the ledger. Only one part is in progress at a time, and any run finishes it.
 *
 * An entry is moved once its month has been over for the retention period, a checkpoint counts it, a batch has claimed
 * its accrual, and no open hold, open lease or recently swept lease needs it.
 */
export function createArchive(
  deps: MoneyDeps & {
    parts: ArchiveParts;
    sums: AccountSums;
    findSwept: LeaseClosing["findSwept"];
    objects: ArchiveObjects;
    sumUsage: (signal?: AbortSignal) => Promise<void>;
    retentionDays: number | undefined;
    sizes?: ArchiveSizes | undefined;
  },
) {
  const { mongo, accounts, ledger, parts, sums, findSwept, objects, sumUsage, retentionDays, clock, log } = deps;
  const { partEntries, partBytes, batchEntries } = deps.sizes ?? defaultSizes;

  const inSpan = ({ from, before }: Span) =>
    ({ ...archivable, createdAt: { $gte: from, $lt: before }, $nor: [unclaimed] }) as object;

  async function findFirst(span: Span): Promise<Date | undefined> {
    const options = {
      hint: archiveIndex,
      sort: archiveIndex,
      projection: { createdAt: 1 },
      ...scatter("archive"),
    } as const;
    return (await ledger.collection.findOne(inSpan(span), options))?.createdAt;
  }

  /** Omits the entries of open holds and leases, and of leases that may still have late costs. */
  async function withoutOpen(entries: readonly ExactEntry[]): Promise<readonly ExactEntry[]> {
    const _id = { $in: [...new Set(entries.map(({ account }) => account))] };
    const open = accounts.collection.aggregate<{ ids: string[] }>([
      { $match: { _id, openHolds: { $gt: 0 } } },
      { $project: { _id: 0, ids: { $map: { input: { $objectToArray: "$holds" }, in: "$$this.k" } } } },
    ]);
    const leases = [...new Set(entries.flatMap(({ lease }) => lease ?? []))];
    const [holds, swept] = await Promise.all([open.toArray(), findSwept(leases)]);
    const needed = new Set([...holds.flatMap(({ ids }) => ids), ...swept]);
    if (needed.size === 0) return entries;
    return entries.filter(({ _id: id, lease }) => !needed.has(id) && !(lease !== undefined && needed.has(lease)));
  }

  /** Builds the file of the next part. Returns undefined if every entry of the span is still needed. */
  async function gather(span: Span, session: ClientSession) {
    const file = createArchiveFile();
    const options = {
      session,
      hint: archiveIndex,
      sort: archiveIndex,
      batchSize: batchEntries,
      ...exactTypes,
      ...longRunning,
      ...scatter("archive"),
    } as const;
    const cursor = ledger.collection.find(inSpan(span), { ...options, readConcern: { level: "majority" } });
    const isFull = () => file.size().entries >= partEntries || file.size().rawBytes >= partBytes;
    for await (const batch of inBatches(cursor, batchEntries)) {
      for (const entry of await withoutOpen(batch as unknown as readonly ExactEntry[])) if (!isFull()) file.add(entry);
      if (isFull()) break;
    }
    return file.size().entries === 0 ? undefined : file.close();
  }

  const load = async ({ _id }: Part, contents: Contents) => readArchiveFile(_id, await objects.get(_id), contents);

  /** Deletes entries that are still in the ledger and adds them to the sums, so that each is counted once. */
  const move = (lines: readonly ArchivedLine[]): Promise<void> =>
    mongo.inTransaction(async (session) => {
      // The accounts let a sharded cluster query only the shards that hold them.
      const account = { $in: [...new Set(lines.map((line) => line.account))] };
      const these = { _id: { $in: lines.map(({ id }) => id) }, account, ...archivable } as object;
      const options = { session, projection: { account: 1, amount: 1 }, ...longRunning } as const;
      const entries = await ledger.collection.find(these, options).toArray();
      if (entries.length === 0) return;
      const { deletedCount } = await ledger.collection.deleteMany(these, { session, ...longRunning });
      if (deletedCount !== entries.length) throw new Error(`${deletedCount} of ${entries.length} entries were deleted`);
      await sums.addEntries(entries, session);
    });

  /** Deletes the ledger entries that the file contains. Safe in any number of concurrent runs. */
  async function deleteEntries(part: Part, lines: readonly ArchivedLine[], signal: AbortSignal | undefined) {
    async function moveAll(range: readonly ArchivedLine[]): Promise<void> {
      for (let at = 0; at < range.length && !signal?.aborted; at += batchEntries)
        await move(range.slice(at, at + batchEntries));
    }
    await Promise.all(byAccounts(lines, deletedAtOnce).map(moveAll));
    // After an abort, another run continues the work.
    if (!signal?.aborted) await parts.markArchived(part);
  }

  async function removeAbandoned(): Promise<void> {
    for (const part of await parts.findAbandoned()) {
      await objects.remove(part._id);
      await parts.removeAbandoned(part);
    }
  }

  /** Ends a part that another run began. Returns false if that run may still be alive. */
  async function endOpen(open: Part, signal: AbortSignal | undefined): Promise<boolean> {
    const part = await parts.takeOver(open);
    if (!part) return false;
    if (isWritten(part)) await deleteEntries(part, await load(part, part), signal);
    else await parts.abandon(part);
    return true;
  }

  /** Returns undefined if another run is doing the work. */
  const archivePart = (month: string, span: Span, signal: AbortSignal | undefined) =>
    // The session sees the deletions of the previous run, on whichever server it reads.
    mongo.inSession(async (session) => {
      const part = await parts.begin(month, session);
      if (!part) return undefined;
      const gathered = await gather(span, session);
      if (!gathered) {
        await parts.abandon(part);
        return { entries: 0 };
      }
      const { file, contents } = gathered;
      const { entries, amount, sha256, from, to } = contents;
      const said = { entries, amount, sha256, from: from.toISOString(), to: to.toISOString(), version: part.version };
      const metadata = Object.fromEntries(Object.entries(said).map(([name, value]) => [name, String(value)]));
      await objects.put(part._id, file, metadata);
      const lines = await load(part, contents);
      if (!(await parts.markVerified(part, contents))) return undefined;
      await deleteEntries(part, lines, signal);
      log.info({ month, entries, bytes: file.length }, "ledger entries were archived");
      return contents;
    });

  /** Archives everything that is due until the signal aborts. Returns the number of archived entries. */
  async function run(signal?: AbortSignal): Promise<number> {
    if (retentionDays === undefined) return 0;
    await objects.assertNotExpired();
    // Daily usage is computed from the entries, so it must include them before they are archived.
    await sumUsage(signal);
    const before = monthStart(new Date(clock.now() - retentionDays * dayMs));
    let archived = 0;
    for (let from = new Date(0); !signal?.aborted; ) {
      await removeAbandoned();
      const open = await parts.findOpen();
      if (open) {
        if (!(await endOpen(open, signal))) break;
        continue;
      }
      const first = await findFirst({ from, before });
      if (!first) break;
      const next = monthStart(first, 1);
      const done = await archivePart(monthOf(first), { from: first, before: next }, signal);
      if (!done) break;
      archived += done.entries;
      // Entries that are still needed are not read again.
      from = "to" in done ? done.to : next;
    }
    return archived;
  }

  const read = (part: WrittenPart): Promise<ArchivedLine[]> => load(part, part);

  return { run, read };
}

/** Months are in UTC. */
const monthOf = (date: Date): string => date.toISOString().slice(0, 7);
export const monthStart = (date: Date, later = 0): Date =>
  new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + later));

/** Splits the lines into similarly long lists. Lines of an account are adjacent, so that its sum is written rarely. */
function byAccounts(lines: readonly ArchivedLine[], count: number): ArchivedLine[][] {
  const sorted = lines.toSorted(
    (one, other) => Number(one.account > other.account) - Number(one.account < other.account),
  );
  const lists: ArchivedLine[][] = [];
  for (let from = 0, to = 0; from < sorted.length; from = to) {
    to = from + Math.ceil(sorted.length / count);
    while (sorted[to]?.account === sorted[to - 1]?.account && to < sorted.length) to += 1;
    lists.push(sorted.slice(from, to));
  }
  return lists;
}
