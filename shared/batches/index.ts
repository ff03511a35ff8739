/**
 * Batches: files of calls that run when workers are idle (docs/api/batches.md, docs/adr/0036-batches.md). Owns the
 * collections `batches`, `batchLines` and `providerBatches` and the prefix `batch/` of object storage.
 *
 *   validating -> failed
 *   validating -> in_progress -> finalizing -> completed | expired
 *   validating, in_progress -> cancelling -> finalizing -> cancelled
 *
 * A batch is one document with a cursor in its input file. A process works at it while it renews its claim: a worker
 * validates the file, an API instance admits its lines, records their results, and ends it. A line has a document only
 * while it is in flight. Its answer or error is stored before its cost is captured, so that each line has one result, and
 * a result that was charged is never lost. Results go to storage in parts; one conditional write adds a part, its counts
 * and the cursor; then the lines are deleted.
 *
 * Amounts are bigint nano-USD, sizes bytes, times `Date`. Throws `notFound`, `conflict`, `rateLimited`.
 */
import type { mongo as driver } from "mongoose";
import { conflict, rateLimited } from "#errors";
import type { Files } from "#files";
import { dayMs } from "#platform/clock";
import type { ObserveWrite } from "#platform/concurrency/group-commit";
import { randomBase62 } from "#platform/ids";
import { findPage, openCollection, type Page, scatter } from "#platform/mongo/collection";
import { isDuplicate } from "#platform/mongo/connection";
import type { Uses } from "#platform/uses";
import type { Webhooks } from "#webhooks";
import { claimedBatch, createClaims } from "./claims.ts";
import {
  type BatchKind,
  type BatchStatus,
  type BatchUsage,
  batchDefinition,
  type Counts,
  type Cursor,
  type IdempotentRequest,
  keptMs,
  type LineProblem,
  lineDefinition,
  noCounts,
  noUsage,
  openStatuses,
  providerBatchDefinition,
  type ResultPart,
  type StoredBatch,
  type StoredLine,
  type StoredProviderBatch,
} from "./collections.ts";
import { createBatchEvents, eventDelayMs } from "./events.ts";
import { findCreated } from "./idempotency.ts";
import { createLines } from "./lines.ts";
import { findOpenBatches, listOpenBatches, type OpenBatches, type OpenBatchQuery } from "./open-batches.ts";
import { createProviderBatches } from "./provider-batches.ts";

export {
  type BatchKind,
  type BatchStatus,
  type BatchUsage,
  batchesSchema,
  batchKinds,
  batchStatuses,
  type Counts,
  type IdempotentRequest,
  isEnded,
  type LineOutcome,
  type LineProblem,
  noCounts,
  noUsage,
  openStatuses,
  type ResultPart,
  runningStatuses,
  type StoredBatch,
  type StoredLine,
  type StoredProviderBatch,
} from "./collections.ts";
export { batchEndpoint, batchEndpoints } from "./endpoints.ts";
export { type EndedLine, type LineCall, type Lines, lineIdOf } from "./lines.ts";
export type { ListedBatch, OpenBatches } from "./open-batches.ts";
export { LineRefused, maxLineBytes, type ParsedLine, parseLine } from "./parse-line.ts";
export { isProviderBatch, newProviderBatchId, type ProviderBatches } from "./provider-batches.ts";
export { type FileLine, readLines } from "./read-lines.ts";
export { linesRecorded, renderBatch, renderMessageBatch } from "./render.ts";
export { type ResultLine, resultOf, resultOfUnrun } from "./result-lines.ts";

export const maxLines = 50_000;
export const maxOpenBatches = 100;
/** Lines begin within this time of the batch's creation. */
const windowMs = dayMs;

export interface NewBatch {
  readonly account: string;
  readonly key: string;
  readonly kind: BatchKind;
  readonly endpoint: string;
  readonly inputFile: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly outputLifeSeconds?: number | undefined;
  readonly publicUrl: string;
  /** The number of lines, if it is known before the validation. */
  readonly lines?: number;
  /** Who receives the event of its end, in addition to the endpoints that subscribe to it (`x-xm-webhook`). */
  readonly callback?: string | undefined;
  /** The tags of its calls (`x-xm-tags`). */
  readonly tags?: readonly string[] | undefined;
  readonly idempotency?: IdempotentRequest | undefined;
}

/** The content of a file that was validated. */
export interface Validated {
  readonly lines: number;
  readonly estimateNanoUsd: bigint;
  /** Set if all lines name the same model. */
  readonly model: string | undefined;
}

/** Results that a part in storage has, and the state of the batch with them. */
export interface Recorded {
  readonly outputs: readonly ResultPart[];
  readonly failures: readonly ResultPart[];
  readonly counts: Counts;
  readonly usage: BatchUsage;
  readonly costNanoUsd: bigint;
  readonly cursor: Cursor;
  readonly lines: readonly number[];
}

export interface BatchObserver {
  created(kind: BatchKind): void;
  ended(status: BatchStatus): void;
  /** Called once for each part, with what it adds. */
  recorded(counts: Counts): void;
  /** Called with the number of lines whose next try begins. */
  retried(lines: number): void;
}

const incremented = (prefix: string, of: object) =>
  Object.fromEntries(Object.entries(of).map(([name, value]) => [`${prefix}.${name}`, value as number]));

export function createBatches(
  deps: Uses<"mongo" | "clock" | "log"> & {
    files: Pick<Files, "putAnswer" | "getAnswer" | "deleteAnswer">;
    webhooks: Pick<Webhooks, "record">;
    /** A process that has not renewed its claim for this long is taken to be dead. */
    claimMs: number;
    observe?: ObserveWrite | undefined;
    observer?: BatchObserver | undefined;
  },
) {
  const { mongo, files, claimMs, observe, observer, clock } = deps;
  const { collection } = openCollection<StoredBatch>(mongo, "batches", batchDefinition);
  const lines = createLines({
    collection: openCollection<StoredLine>(mongo, "batchLines", lineDefinition).collection,
    files,
    observe,
    retried: (count) => observer?.retried(count),
  });
  const events = createBatchEvents({ ...deps, collection });
  type Filter = driver.Filter<StoredBatch>;
  type Update = driver.UpdateFilter<StoredBatch>;
  const after = { returnDocument: "after" } as const;

  const claimedUntil = () => ({ dueAt: new Date(clock.now() + claimMs) });

  return {
    lines,

    providerBatches: createProviderBatches({
      collection: openCollection<StoredProviderBatch>(mongo, "providerBatches", providerBatchDefinition).collection,
      claimMs,
      clock,
    }),

    findCreated: (account: string, request: IdempotentRequest) => findCreated({ collection, clock }, account, request),

    /**
     * Returns the batch of a concurrent request with the same `Idempotency-Key`, if that was faster. Throws 409 if it was
     * another request, and 429 if the account has too many batches that have not ended.
     */
    async create(batch: NewBatch): Promise<StoredBatch> {
      const { account, kind, lines: count = 0, outputLifeSeconds, callback, tags, idempotency, ...rest } = batch;
      const isOpen = { account, dueAt: { $exists: true } } as Filter;
      const open = await collection.countDocuments(isOpen, {
        limit: maxOpenBatches,
        hint: { account: 1, dueAt: 1 },
        // Renewals move batches forward in the index.
        readConcern: { level: "snapshot" },
      });
      if (open >= maxOpenBatches)
        throw rateLimited(`The account has ${maxOpenBatches} batches that have not ended.`, 60);
      const now = clock.now();
      const stored: StoredBatch = {
        ...rest,
        _id: `${kind === "openai" ? "batch" : "msgbatch"}_${randomBase62(24)}`,
        account,
        kind,
        status: "validating",
        createdAt: new Date(now),
        expiresAt: new Date(now + windowMs),
        times: { validating: new Date(now) },
        ...(outputLifeSeconds !== undefined && { outputLifeSeconds }),
        ...(callback !== undefined && { callback }),
        ...(tags && { tags: [...tags] }),
        ...(idempotency && { idempotency }),
        lines: count,
        counts: noCounts,
        usage: noUsage,
        costNanoUsd: 0n,
        estimateNanoUsd: 0n,
        problems: [],
        cursor: { line: 0, byte: 0 },
        outputs: [],
        failures: [],
        recorded: [],
        dueAt: new Date(now),
      };
      try {
        await collection.insertOne(stored as never);
      } catch (error) {
        const faster =
          idempotency && isDuplicate(error)
            ? await findCreated({ collection, clock }, account, idempotency)
            : undefined;
        if (!faster) throw error;
        return faster;
      }
      observer?.created(kind);
      return stored;
    },

    find: (account: string, _id: string): Promise<StoredBatch | null> => collection.findOne({ account, _id } as Filter),

    /** `kind` undefined: of both. */
    list: (account: string, kind: BatchKind | undefined, page: Page): Promise<StoredBatch[]> =>
      findPage(collection, page, {
        owner: { account, ...(kind && { kind }) } as Filter,
        unknown: "this account has no batch",
      }) as never,

    /** A batch of any account, for operators. */
    findOfAny: (_id: string): Promise<StoredBatch | null> =>
      collection.findOne({ _id } as Filter, scatter("a batch of any account")),

    /** Batches of all accounts that have not ended, for operators. Throws 400 for an unknown `after`. */
    listOpen: (query: OpenBatchQuery) => listOpenBatches(collection, query),

    /** Lines that have not begun are not run. Returns the batch. Throws 409 if it has ended otherwise. */
    async cancel(account: string, _id: string): Promise<StoredBatch | null> {
      const now = new Date(clock.now());
      const open = { account, _id, status: { $in: ["validating", "in_progress"] } } as Filter;
      const change = { $set: { status: "cancelling", "times.cancelling": now }, $unset: { paused: "" } };
      const changed = await collection.findOneAndUpdate(open, change as Update, after);
      const batch = changed ?? (await collection.findOne({ account, _id } as Filter));
      if (batch && !["cancelling", "cancelled", "finalizing"].includes(batch.status))
        throw conflict(`The batch is ${batch.status} and can no longer be cancelled.`);
      return batch as StoredBatch | null;
    },

    /** The id of a batch that has not ended and reads this file. */
    async readerOf(account: string, inputFile: string): Promise<string | undefined> {
      const filter = { account, inputFile, dueAt: { $exists: true } } as Filter;
      return (await collection.findOne(filter, { hint: { account: 1, dueAt: 1 }, projection: { _id: 1 } }))?._id;
    },

    /** Notes that lines go on after a pause. */
    async resume(batch: StoredBatch): Promise<void> {
      await collection.updateOne(claimedBatch(batch), { $unset: { paused: "" } } as Update);
    },

    /** Deletes a batch that has ended. Returns false if it has not. */
    async delete(account: string, _id: string): Promise<boolean> {
      const filter = { account, _id, status: { $nin: [...openStatuses] } } as Filter;
      return (await collection.deleteOne(filter)).deletedCount === 1;
    },

    ...createClaims({ collection, claimMs, clock }),

    /** Notes why no line begins, and records the event of it. The next part that is recorded ends the pause. */
    async pause(batch: StoredBatch, paused: string): Promise<void> {
      const now = clock.now();
      const change = { $set: { paused, pausedAt: new Date(now), eventDueAt: new Date(now + eventDelayMs) } };
      const changed = await collection.findOneAndUpdate(
        claimedBatch(batch, { paused: { $ne: paused } }),
        change as Update,
        after,
      );
      if (changed) await events.record(changed as StoredBatch);
    },

    /** Ends the validation. Its lines begin, unless it was cancelled meanwhile. */
    async accept(batch: StoredBatch, { lines, estimateNanoUsd, model }: Validated): Promise<void> {
      const now = new Date(clock.now());
      const found = { lines, estimateNanoUsd, ...(model !== undefined && { model }) };
      const change = {
        $set: { ...found, status: "in_progress", "times.in_progress": now, dueAt: now, progressAt: now },
        $unset: { claimedBy: "" },
      };
      const accepted = await collection.updateOne(claimedBatch(batch, { status: "validating" }), change as Update);
      if (accepted.matchedCount === 0)
        await collection.updateOne(claimedBatch(batch), {
          $set: { ...found, dueAt: now },
          $unset: { claimedBy: "" },
        } as Update);
    },

    /** Records a part of the results. Returns the batch as it is now, or undefined if another process has it. */
    async record(batch: StoredBatch, recorded: Recorded): Promise<StoredBatch | undefined> {
      const { outputs, failures, counts, usage, costNanoUsd, cursor } = recorded;
      const change = {
        $set: {
          cursor,
          recorded: [...recorded.lines],
          progressAt: new Date(clock.now()),
          ...claimedUntil(),
        },
        $unset: { paused: "" },
        $inc: { costNanoUsd, ...incremented("counts", counts), ...incremented("usage", usage) },
        $push: { outputs: { $each: [...outputs] }, failures: { $each: [...failures] } },
      };
      const updated = await collection.findOneAndUpdate(claimedBatch(batch), change as unknown as Update, after);
      if (!updated) return undefined;
      observer?.recorded(counts);
      await lines.delete(batch.account, batch._id, recorded.lines);
      return updated as StoredBatch;
    },

    /** Marks the batch as finalizing: all its lines are recorded, and its parts are complete. Resolves as `renew`. */
    async finalize(batch: StoredBatch): Promise<StoredBatch | undefined> {
      const change = { $set: { status: "finalizing", "times.finalizing": new Date(clock.now()), ...claimedUntil() } };
      const finalized = await collection.findOneAndUpdate(claimedBatch(batch), change as Update, after);
      return (finalized ?? undefined) as StoredBatch | undefined;
    },

    /** Ends the batch. `problems`: why its file is refused. */
    async end(
      batch: StoredBatch,
      status: Extract<BatchStatus, "failed" | "completed" | "expired" | "cancelled">,
      more: { outputFile?: string | undefined; errorFile?: string | undefined; problems?: readonly LineProblem[] } = {},
    ): Promise<void> {
      const now = clock.now();
      const set = Object.fromEntries(Object.entries(more).filter(([, value]) => value !== undefined));
      const times = { [`times.${status}`]: new Date(now) };
      const due = { eventDueAt: new Date(now + eventDelayMs), purgeAt: new Date(now + keptMs) };
      const change = {
        $set: { ...set, ...times, ...due, status, recorded: [] },
        $unset: { claimedBy: "", dueAt: "", paused: "" },
      };
      const ended = await collection.findOneAndUpdate(claimedBatch(batch), change as Update, after);
      if (!ended) return;
      observer?.ended(status);
      await events.record(ended as StoredBatch);
    },

    recordDueEvents: () => events.recordDue(),

    findOpen: (): Promise<OpenBatches> => findOpenBatches({ collection, clock }),
  };
}

export type Batches = ReturnType<typeof createBatches>;
