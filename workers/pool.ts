import { DelayedError, type Job, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { noCapacity } from "#errors";
import { type JobName, jobCatalog, type Pool, toPaidCall } from "#jobs";
import { type Handler, type HandlerDeps, handlers } from "./handlers/index.ts";
import { endWithoutRunning, HandedOver } from "./run-call.ts";

/** One BullMQ worker for one pool. Payloads are parsed again: another version of the API may have written them. */
export function startPool(
  deps: HandlerDeps,
  { pool, concurrency, redis }: { pool: Pool; concurrency: number; redis: Redis },
) {
  const { log, running, background } = deps;
  const active = new Set<Job>();

  async function run(job: Job, token: string | undefined): Promise<void> {
    const name = job.name as JobName;
    // A scheduled job that takes longer than its interval runs once, so that it does not take all slots.
    if ("everyMs" in jobCatalog[name] && [...active].some((other) => other.name === name)) return;
    active.add(job);
    try {
      const payload = jobCatalog[name].payload.parse(job.data);
      await (handlers[name] as Handler<JobName>)(deps, payload as never, job.attemptsStarted);
    } catch (error) {
      if (!(error instanceof HandedOver)) throw error;
      // Back to the queue without a decision. It fails if another worker has the job already, which is as good.
      await job.moveToDelayed(Date.now(), token).catch(() => undefined);
      throw new DelayedError();
    } finally {
      active.delete(job);
    }
  }

  const worker = new Worker(pool, run, {
    connection: redis,
    concurrency,
    lockDuration: 10_000,
    stalledInterval: 5_000,
    // With the default BullMQ fails a stalled job without calling the processor, and the caller gets no answer.
    maxStalledCount: 1_000_000,
    skipVersionCheck: true,
  });
  worker.on("error", (error) => log.warn({ err: error.message, pool }, "worker"));
  worker.on("lockRenewalFailed", (ids) => {
    for (const id of ids) running.abort(id, "lost");
  });
  // A handler that threw has decided nothing: the hold and the caller still wait.
  worker.on("failed", (job, error) => {
    log.error({ err: error, job: job?.name, id: job?.id }, "a job failed");
    const payload = toPaidCall(job?.data);
    if (!payload) return;
    const ended = endWithoutRunning(
      deps,
      payload,
      noCapacity("The call could not be run; nothing was charged.", 5, error),
    );
    background.run("a failed job could not be decided", ended, { requestId: payload.requestId });
  });

  return {
    pool,
    load: () => ({ free: Math.max(0, concurrency - active.size), running: active.size }),
    /** Takes no more jobs. */
    pause: () => worker.pause(true),
    /** Waits for running jobs without a limit: abort them first. */
    close: () => worker.close(),
  };
}
