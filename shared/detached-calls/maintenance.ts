import type { Collection, mongo as driver } from "mongoose";
import type { PaidCall, PaidJobName } from "#jobs";
import type { Clock } from "#platform/clock";
import { longRunning, scatter } from "#platform/mongo/collection";
import type { CallStatus, Stored, StoredError } from "./collection.ts";

/** Maintenance looks at a job this long after it should have made progress. */
export const overdueMs = 15_000;
const pageSize = 100;

type Filter = driver.Filter<Stored>;

/** A job that maintenance should look at. */
export interface DueCall {
  readonly account: string;
  readonly requestId: string;
  readonly payload: PaidCall;
  readonly job: PaidJobName;
  readonly status: CallStatus;
  readonly queuedUntil: Date;
  /** The job was withdrawn. */
  readonly error?: StoredError | undefined;
}

/** Finds the jobs that a process which died may have left undone. */
export function createMaintenance(collection: Collection<Stored>, clock: Pick<Clock, "now">) {
  let lostSince = Number.NEGATIVE_INFINITY;
  return {
    /** Makes the jobs due that were queued before Redis lost its data. `since`: Unix milliseconds. */
    async noteLostQueues(since: number): Promise<void> {
      if (since <= lostSince) return;
      const filter = { dueAt: { $exists: true }, createdAt: { $lt: new Date(since) } } as Filter;
      const change = { $set: { dueAt: new Date(clock.now()) } } as driver.UpdateFilter<Stored>;
      await collection.updateMany(filter, change, { ...scatter("jobs that are due"), ...longRunning });
      lostSince = since;
    },
    /** The jobs that maintenance should look at, the longest overdue first. */
    async *due(): AsyncGenerator<DueCall> {
      const filter = { dueAt: { $lte: new Date(clock.now()) } } as Filter;
      const found = collection.find(filter, {
        ...scatter("jobs that are due"),
        sort: { dueAt: 1 },
        batchSize: pageSize,
      });
      for await (const { _id: requestId, account, payload, job, queuedUntil, status, error } of found)
        if (payload && job && queuedUntil) yield { account, requestId, payload, job, status, queuedUntil, error };
    },
    /** Looks again once the job should have been started, or have ended. */
    async postpone({ account, requestId, status, queuedUntil, payload }: DueCall): Promise<void> {
      const next = status === "queued" ? queuedUntil.getTime() : payload.deadlineAt;
      const dueAt = new Date(Math.max(next, clock.now()) + overdueMs);
      const filter = { account, _id: requestId, dueAt: { $exists: true } } as Filter;
      await collection.updateOne(filter, { $set: { dueAt } } as driver.UpdateFilter<Stored>);
    },
  };
}
