import { type DueCall, jobNeverBegan, type StoredError } from "#detached-calls";
import { noCapacity } from "#errors";
import { jobCatalog, type Queues } from "#jobs";
import { inBatches } from "#platform/mongo/collection";
import type { RunCallDeps } from "../run-call/context.ts";
import { endWithdrawn, endWithoutRunning } from "../run-call.ts";

const jobLost = () => noCapacity("The queue lost this call while it ran; nothing was charged. Repeat it.", 1);

/** What became of a job that maintenance found. */
export type RecoveredJob = "ended" | "expired" | "enqueued" | "lost";

/** The jobs that are looked at together. Each waits for a few answers of the stores. */
const atOnce = 16;

interface Deps extends RunCallDeps {
  readonly queues: Queues;
  readonly observeJobs: (outcome: RecoveredJob) => void;
}

/**
 * Does what a process that died has left undone for jobs: records the events of those that have ended, copies the outcome of
 * those whose cost is captured, enqueues again those that no queue has, and ends those that waited too long or whose worker
 * and queue job are gone.
 */
export async function endDetachedCalls(deps: Deps & { readonly ending: AbortSignal }): Promise<void> {
  const { detachedCalls, queues, ending } = deps;
  await detachedCalls.recordDueEvents();
  await detachedCalls.noteLostQueues(await queues.emptySince());
  for await (const calls of inBatches(detachedCalls.due(), atOnce)) {
    if (ending.aborted) return;
    await Promise.all(calls.map((call) => recover(deps, call)));
  }
}

async function recover(deps: Deps, call: DueCall): Promise<void> {
  const { detachedCalls, queues, clock, observeJobs } = deps;
  const { account, requestId, payload, job, status, queuedUntil, error } = call;
  if (await detachedCalls.endIfCaptured(account, requestId)) return observeJobs("ended");
  const { pool } = jobCatalog[job];
  const isPending = await queues.isPending(pool, requestId);
  const isLate = clock.now() > queuedUntil.getTime();
  if (status === "queued" && (error || isLate)) {
    const late: StoredError = { fields: jobNeverBegan().fields(), status: "expired" };
    if (await endWithdrawn(deps, { account, requestId }, late)) observeJobs(error ? "ended" : "expired");
    await queues.removeDetached(job, call);
  } else if (isPending) await detachedCalls.postpone(call);
  else if (status === "queued") {
    await queues.enqueueDetached(job, { account, requestId }, 0);
    await detachedCalls.postpone(call);
    observeJobs("enqueued");
  } else {
    await endWithoutRunning(deps, payload, jobLost());
    observeJobs("lost");
  }
}
