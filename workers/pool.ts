import { DelayedError, type Job, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { noCapacity } from "#errors";
import { isPaidCall, type JobName, jobCatalog, type Pool } from "#jobs";
import { type Handler, type HandlerDeps, handlers } from "./handlers/index.ts";
import { endUnrun, HandedOver } from "./run-call.ts";

export interface RunningPool {
  readonly pool: Pool;
  load(): { free: number; running: number };
  /** Takes no more jobs. */
  pause(): Promise<void>;
  /** Waits for what runs: abort it first. */
  close(): Promise<void>;
}

/** One BullMQ worker for one pool. A job is parsed again here: the queue is an outside for both sides. */
export function startPool(deps: HandlerDeps, options: { pool: Pool; concurrency: number; redis: Redis }): RunningPool {
  const { pool, concurrency, redis } = options;
  const { log, running, background } = deps;
  let active = 0;
  const scheduled = new Set<JobName>();

  /** One that takes longer than its interval is here once, and leaves room for the others. */
  async function unlessRunning(name: JobName, run: () => Promise<void>): Promise<void> {
    if (scheduled.has(name)) return;
    scheduled.add(name);
    try {
      await run();
    } finally {
      scheduled.delete(name);
    }
  }

  const worker = new Worker(
    pool,
    async (job, token) => {
      active++;
      try {
        const name = job.name as JobName;
        const payload = jobCatalog[name].payload.parse(job.data);
        const run = () => (handlers[name] as Handler<JobName>)(deps, payload as never, job.attemptsStarted);
        await ("everyMs" in jobCatalog[name] ? unlessRunning(name, run) : run());
      } catch (error) {
        if (error instanceof HandedOver) return await handOver(job, token);
        throw error;
      } finally {
        active--;
      }
    },
    {
      connection: redis,
      concurrency,
      lockDuration: 10_000,
      stalledInterval: 5_000,
      // With the default BullMQ fails a stalled job without calling the processor, and nobody answers (measured).
      maxStalledCount: 1_000_000,
      skipVersionCheck: true,
    },
  );
  worker.on("error", (error) => log.warn({ err: error.message, pool }, "worker"));
  worker.on("lockRenewalFailed", (ids) => {
    for (const id of ids) running.abort(id, "lost");
  });
  // A handler that threw has decided nothing: the hold and the caller still wait.
  worker.on("failed", (job, error) => {
    log.error({ err: error, job: job?.name, id: job?.id }, "a job failed");
    const payload = isPaidCall(job?.data);
    if (payload)
      background.run(
        "a failed job could not be decided",
        endUnrun(deps, payload, noCapacity("The call could not be run; nothing was charged.", 5, error)),
        { requestId: payload.requestId },
      );
  });

  return {
    pool,
    load: () => ({ free: Math.max(0, concurrency - active), running: active }),
    pause: () => worker.pause(true),
    close: () => worker.close(),
  };
}

/** Back to the queue without a decision. If another worker has it already, that is as good. */
async function handOver(job: Job, token: string | undefined): Promise<never> {
  await job.moveToDelayed(Date.now(), token).catch(() => undefined);
  throw new DelayedError();
}
