/**
 * Detached calls: calls that end without the API instance that admitted them, because their answer is stored
 * (docs/adr/0032-detached-calls.md). Owns the collection `detachedCalls`: one document for each, under its request id.
 *
 *   a call under an `Idempotency-Key`   the document is created with its answer
 *   a job of `/v1/jobs`                 the document is created before the call is queued, with its payload and body
 *   a response in the background        the same, with the events of its stream
 *
 * The answer of a call, or its error, is stored before the cost is captured, and counts once the ledger has its
 * entry. `end` then copies the outcome from the entry, in one conditional write; a scheduled job repeats it for calls
 * whose worker died in between. So a crash loses neither an answer nor a charge, and the ledger alone decides.
 *
 * Answers and errors are available for 24 hours from the end of the call. Throws `noCapacity` if a large answer cannot
 * be stored.
 */
import type { mongo as driver } from "mongoose";
import type { Files } from "#files";
import type { PaidCall, PaidJobName } from "#jobs";
import type { JsonObject } from "#json";
import type { LedgerEntry, Money } from "#money";
import { dayMs } from "#platform/clock";
import { findPage, openCollection, type Page } from "#platform/mongo/collection";
import { isDuplicate } from "#platform/mongo/connection";
import type { Uses } from "#platform/uses";
import type { Webhooks } from "#webhooks";
import {
  type CallStatus,
  definition,
  isEnded,
  type NewJob,
  openStatuses,
  type Stored,
  type StoredAnswer,
  type StoredError,
} from "./collection.ts";
import { type Job, type JobView, jobIdOf, viewOf } from "./job.ts";
import { createJobEvents, eventDelayMs } from "./job-events.ts";
import { createMaintenance, overdueMs } from "./maintenance.ts";
import { countOpenJobs } from "./open-jobs.ts";
import type { Reserve } from "./packed-text.ts";
import { createReading, withoutTexts } from "./reading.ts";

export {
  type BackgroundResponse,
  type CallStatus,
  callStatuses,
  detachedCallsSchema,
  isEnded,
  type NewJob,
  type PackedAnswer,
  type StoredAnswer,
  type StoredError,
} from "./collection.ts";
export { type JobExtras, type JobView, jobIdOf, renderJob, requestIdOf } from "./job.ts";
export { jobCancelled, jobFailed, jobNeverBegan } from "./job-errors.ts";
export type { DueCall } from "./maintenance.ts";
export { maxCountedJobs, type OpenJobs } from "./open-jobs.ts";
export { createPackedTexts, type PackedText, type Reserve } from "./packed-text.ts";

export type StartedCall =
  /** This delivery runs the call. */
  | { readonly kind: "started"; readonly payload: PaidCall; readonly job: PaidJobName }
  /** An earlier delivery has started it. */
  | { readonly kind: "running"; readonly payload: PaidCall; readonly job: PaidJobName }
  /** It has waited too long, or was withdrawn: it is to be withdrawn and ended at zero. */
  | { readonly kind: "late" }
  /** It has ended, or was deleted. */
  | { readonly kind: "ended" };

/** A job that no delivery starts any more, and why. */
export interface WithdrawnJob {
  readonly payload: PaidCall;
  readonly error: StoredError;
}

/** Counts jobs as they begin and end. */
export interface JobObserver {
  submitted(endpoint: string): void;
  ended(status: CallStatus): void;
}

export function createDetachedCalls(
  deps: Uses<"mongo" | "clock" | "log"> & {
    money: Pick<Money, "entry" | "endUncaptured">;
    files: Pick<Files, "putAnswer" | "getAnswer" | "deleteAnswer">;
    webhooks: Pick<Webhooks, "record">;
    observer?: JobObserver;
  },
) {
  const { mongo, money, files, webhooks, observer, clock, log } = deps;
  const { collection } = openCollection<Stored>(mongo, "detachedCalls", definition);
  type Filter = driver.Filter<Stored>;
  const reading = createReading(collection, files);
  const { findJob, findText, findAnswer, hasAnswer, texts } = reading;
  const events = createJobEvents({ collection, reading, webhooks, clock, log });

  /** Sets the outcome that the ledger's entry tells, unless the call has ended already, and records its event. */
  async function end(account: string, requestId: string, entry: LedgerEntry): Promise<void> {
    const now = clock.now();
    const succeeded = entry.request?.status === "succeeded";
    const otherwise = entry.request?.status === "cancelled" ? "cancelled" : { $ifNull: ["$error.status", "failed"] };
    const filter = { account, _id: requestId, status: { $in: [...openStatuses] } } as Filter;
    const change: object[] = [
      {
        $set: {
          status: succeeded ? "completed" : otherwise,
          costNanoUsd: entry.costNanoUsd,
          endedAt: new Date(now),
          expiresAt: { $add: [new Date(now), { $ifNull: ["$background.keptMs", dayMs] }] },
          eventDueAt: new Date(now + eventDelayMs),
        },
      },
      { $set: { purgeAt: { $cond: [{ $gt: ["$background.keptMs", null] }, "$expiresAt", "$$REMOVE"] } } },
      { $unset: ["dueAt", "payload"] },
    ];
    const ended = await collection.findOneAndUpdate(filter, change as driver.UpdateFilter<Stored>[], {
      returnDocument: "after",
      projection: withoutTexts,
    });
    if (!ended) return;
    observer?.ended(ended.status);
    await events.recordOrPostpone(ended as Stored);
  }

  return {
    /** Creates the document of a job. Every delivery reads it, so the queue carries only its id. */
    async create(submitted: NewJob): Promise<JobView> {
      const { job, payload, metadata, answerFormat, background, queuedUntil, publicUrl, callback } = submitted;
      const { requestId, account, keyId: key, endpoint, model, acceptedAt, deadlineAt } = payload;
      const stored = {
        _id: requestId,
        account,
        status: "queued" as const,
        createdAt: new Date(acceptedAt),
        expiresAt: new Date(deadlineAt + dayMs),
        key,
        endpoint,
        model,
        job,
        payload,
        metadata,
        ...(answerFormat !== undefined && { answerFormat }),
        ...(background && { background }),
        queuedUntil: new Date(queuedUntil),
        deadlineAt: new Date(deadlineAt),
        dueAt: new Date(acceptedAt + overdueMs),
        publicUrl,
        ...(callback !== undefined && { callback }),
      };
      await collection.insertOne(stored as Stored);
      observer?.submitted(endpoint);
      return viewOf(stored);
    },

    /**
     * Marks the job as started by this delivery, so that no later one runs it, unless it is too late to begin. A delivery
     * whose write was not confirmed may repeat it.
     */
    async start(account: string, requestId: string, delivery: string): Promise<StartedCall> {
      const now = new Date(clock.now());
      const isNew = { status: "queued", startedAt: { $exists: false }, error: { $exists: false } };
      const canStart = { ...isNew, queuedUntil: { $gte: now } };
      // A write that was not confirmed may be carried out after the call has ended.
      const own = { startedBy: delivery, status: "in_progress" };
      const filter = { account, _id: requestId, $or: [canStart, own] } as Filter;
      const change = { $set: { status: "in_progress" as const, startedBy: delivery, startedAt: now } };
      const started = await collection.findOneAndUpdate(filter, change as driver.UpdateFilter<Stored>);
      if (started?.payload && started.job) return { kind: "started", payload: started.payload, job: started.job };
      const stored = await reading.find(account, requestId);
      if (!stored?.payload || !stored.job || isEnded(stored)) return { kind: "ended" };
      if (!stored.startedAt) return { kind: "late" };
      return { kind: "running", payload: stored.payload, job: stored.job };
    },

    /** Stores how far a running job is; it never goes back. `percent`: 1 to 100. */
    async setProgress(account: string, requestId: string, percent: number): Promise<void> {
      const filter = { account, _id: requestId, status: "in_progress" } as Filter;
      await collection.updateOne(filter, { $max: { progress: percent } } as driver.UpdateFilter<Stored>);
    },

    /**
     * Stores an answer before its cost is captured. Resolves with the answer that counts: an earlier delivery may have been
     * faster. The document of a call that is not a job is created here.
     */
    async storeAnswer(account: string, requestId: string, answer: StoredAnswer): Promise<StoredAnswer | undefined> {
      const { text, ...rest } = answer;
      const packed = { ...rest, ...(await texts.pack(requestId, "answer", text)) };
      const now = clock.now();
      const created = { createdAt: new Date(now), expiresAt: new Date(now + dayMs), status: "completed" as const };
      const filter = { account, _id: requestId, answer: { $exists: false } } as Filter;
      try {
        const change = { $set: { answer: packed }, $setOnInsert: created } as driver.UpdateFilter<Stored>;
        const { matchedCount, upsertedCount } = await collection.updateOne(filter, change, { upsert: true });
        if (matchedCount + upsertedCount === 1) return answer;
      } catch (error) {
        if (!isDuplicate(error)) throw error;
      }
      return findAnswer(account, requestId);
    },

    /**
     * Stores why a job failed, before its hold is released. The first reason counts. `output`: JSON of what there was of a
     * response in the background.
     */
    async storeError(account: string, requestId: string, error: StoredError, output?: string): Promise<void> {
      const packed = output === undefined ? {} : { output: await texts.pack(requestId, "output", output) };
      const filter = { account, _id: requestId, error: { $exists: false } } as Filter;
      await collection.updateOne(filter, { $set: { error, ...packed } } as driver.UpdateFilter<Stored>);
    },

    /**
     * Stores the events of a response in the background, whose last one has the number `last`. Once it has ended, its
     * readers may have learned that they are lost.
     */
    async storeEvents(account: string, requestId: string, text: string, last: number): Promise<void> {
      const events = { ...(await texts.pack(requestId, "events", text)), last };
      const filter = { account, _id: requestId, status: { $in: [...openStatuses] } } as Filter;
      await collection.updateOne(filter, { $set: { events } } as driver.UpdateFilter<Stored>);
    },

    /**
     * Ensures that no delivery starts the job, which is then to be ended at zero. The first reason counts. Returns undefined
     * if a delivery has started it.
     */
    async withdraw(account: string, requestId: string, error: StoredError): Promise<WithdrawnJob | undefined> {
      const filter = { account, _id: requestId, status: "queued", startedAt: { $exists: false } } as Filter;
      const first = { $ifNull: ["$error", { $literal: error }] };
      const change: object[] = [{ $set: { error: first, dueAt: new Date(clock.now()) } }];
      const withdrawn = await collection.findOneAndUpdate(filter, change as driver.UpdateFilter<Stored>[], {
        returnDocument: "after",
      });
      if (!withdrawn?.payload || !withdrawn.error) return undefined;
      return { payload: withdrawn.payload, error: withdrawn.error };
    },

    end,

    /** Returns the stored answer, whether or not it counts. Undefined if there is none. */
    answer: findAnswer,
    hasAnswer,
    unpack: reading.unpackAnswer,

    /** Returns JSON of the output of a response in the background that failed or was cancelled. */
    output: async (account: string, requestId: string, reserve?: Reserve): Promise<string | undefined> =>
      (await findText(account, requestId, "output", reserve))?.text,

    /** Returns the events of a response in the background, if they were stored. */
    async events(
      account: string,
      requestId: string,
      reserve?: Reserve,
    ): Promise<{ text: string; last: number } | undefined> {
      const found = await findText(account, requestId, "events", reserve);
      return found && { text: found.text, last: found.packed.last };
    },

    async find(account: string, requestId: string): Promise<JobView | undefined> {
      const stored = await findJob(account, requestId);
      return stored && viewOf(stored);
    },

    async list(
      account: string,
      page: Page,
      filter: { status?: CallStatus | undefined; endpoint?: string | undefined },
    ): Promise<JobView[]> {
      const wanted = Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
      const stored = await findPage(collection, page, {
        owner: { account, job: { $exists: true } } as Filter,
        filter: wanted as Filter,
        projection: withoutTexts,
        unknown: "this account has no job",
        shownAs: jobIdOf,
      });
      return stored.filter((each): each is Job & typeof each => each.job !== undefined).map(viewOf as never);
    },

    /**
     * Counts the jobs of an account that have not ended, up to `limit`. Reads a snapshot, because maintenance moves jobs
     * forward in the index, where a scan would meet them a second time.
     */
    countOpen: (account: string, limit: number): Promise<number> =>
      collection.countDocuments({ account, dueAt: { $exists: true } } as Filter, {
        limit,
        hint: { account: 1, dueAt: 1 },
        readConcern: { level: "snapshot" },
      }),

    /** The result of a completed job as a JSON object. Null if it is something else, or larger than 256 KB. */
    async result(account: string, requestId: string): Promise<JsonObject | null | undefined> {
      const stored = await findJob(account, requestId);
      return stored && reading.resultOf(stored);
    },

    /** Counts the open jobs of all accounts, for operators. */
    countOpenByAccount: (wanted: Parameters<typeof countOpenJobs>[1]) => countOpenJobs(collection, wanted),

    /** Deletes a job that has ended, once its event is recorded. Returns false if it has not ended. */
    async delete(account: string, requestId: string): Promise<boolean> {
      const job = await findJob(account, requestId);
      if (job) await events.record(job);
      const isOver = { status: { $nin: [...openStatuses] }, eventDueAt: { $exists: false } };
      const filter = { account, _id: requestId, ...isOver } as Filter;
      const stored = await collection.findOneAndDelete(filter);
      for (const name of ["answer", "output", "events"] as const) {
        const packed = stored?.[name];
        if (packed) await texts.delete(requestId, name, packed);
      }
      return stored !== null;
    },

    ...createMaintenance(collection, clock),
    recordDueEvents: () => events.recordDue(),

    /** Settles and ends the call if the ledger has its entry. */
    async endIfCaptured(account: string, requestId: string): Promise<boolean> {
      if (!(await money.entry(account, requestId))) return false;
      await end(account, requestId, await money.endUncaptured(account, requestId));
      return true;
    },
  };
}

export type DetachedCalls = ReturnType<typeof createDetachedCalls>;
