import { type Job, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { noCapacity } from "#errors";
import {
  isPool,
  type JobName,
  jobCatalog,
  type PaidJobName,
  type Pool,
  paidCall,
  payloadsOf,
  pools,
  replyAddress,
} from "#jobs";
import { sleep } from "#platform/clock";
import { type Config, ConfigError } from "#platform/config";
import { oneAtATime } from "#platform/one-at-a-time";
import { type Handler, type HandlerDeps, handlers } from "./handlers/index.ts";
import { endWithoutRunning, HandedOver } from "./run-call.ts";
import { beginDelivery } from "./tracing/call-trace.ts";

const lockMs = 10_000;
const renewMs = 2_500;
const retryMs = 1_000;

interface TakenJob {
  readonly job: Job;
  readonly token: string;
  /** The payloads of its calls that have not ended. */
  readonly open: Set<unknown>;
  /** Its lock was lost, so that another worker ends it. */
  isLost: boolean;
  /** Resolves when its calls have ended and it is acknowledged. */
  readonly ended: PromiseWithResolvers<void>;
}

/** The pools that this process serves. */
export function poolsOf(config: Pick<Config, "WORKER_POOLS">): Pool[] {
  const named = [...new Set(config.WORKER_POOLS.split(","))];
  const unknown = named.find((pool) => !isPool(pool));
  if (unknown) throw new ConfigError(`WORKER_POOLS: there is no pool '${unknown}'; there are ${pools.join(", ")}.`);
  return named as Pool[];
}

const couldNotRun = (cause: unknown) => noCapacity("The call could not be run; nothing was charged.", 5, cause);

/**
 * Takes the jobs of one pool, and runs at most `concurrency` of their calls at once. Payloads are parsed again: another
 * version of the API may have written them.
 *
 * BullMQ's own loop counts jobs, not calls, and when it has enough of them it sleeps until one ends: slots that calls of a
 * batch have freed would stay free while another call of it streams. So jobs are taken one by one here, as soon as a slot
 * is free and no call waits for one (https://docs.bullmq.io/patterns/manually-fetching-jobs); BullMQ then leaves the
 * renewal of locks and the acknowledgement to us, and still looks for stalled jobs.
 */
export function startPool(
  deps: HandlerDeps,
  {
    pool,
    concurrency,
    redis,
    observeWait,
  }: { pool: Pool; concurrency: number; redis: Redis; observeWait: (seconds: number) => void },
) {
  const { log, running, replies, clock } = deps;
  const taken = new Set<TakenJob>();
  let slotsTaken = 0;
  let tokensMade = 0;
  let isStopped = false;
  let lastTakenAt = clock.now();
  let onFreeSlot = () => {};
  /** The job that is being handed out. */
  let asking: Promise<Job | undefined> = Promise.resolve(undefined);

  const worker = new Worker(pool, null, {
    connection: redis,
    lockDuration: lockMs,
    stalledInterval: 5_000,
    // With the default BullMQ fails a stalled job without calling the processor, and the caller gets no answer.
    maxStalledCount: 1_000_000,
    skipVersionCheck: true,
  });
  worker.on("error", (error) => log.warn({ err: error.message, pool }, "worker"));

  /** Of the call no more can be read than where its caller waits: it is decided there. */
  async function refuse(data: unknown, error: unknown): Promise<void> {
    const { data: address } = replyAddress.safeParse(data);
    log.error({ err: error, pool, requestId: address?.requestId }, "a call could not be read");
    if (address) await replies.late(address.replyTo, address.requestId, couldNotRun(error), { undecided: true });
  }

  async function runCall({ job }: TakenJob, data: unknown, isShared: boolean): Promise<void> {
    const { data: payload, error } = paidCall.safeParse(data);
    if (!payload) return refuse(data, error);
    const { requestId } = payload;
    // The clocks of two machines may differ.
    if (job.attemptsStarted === 1) observeWait(Math.max(0, clock.now() - payload.acceptedAt) / 1_000);
    const name = job.name as PaidJobName;
    const delivered = { job: name, pool, payload, count: job.attemptsStarted, enqueuedAt: job.timestamp };
    const trace = beginDelivery(deps.tracing, { ...delivered, now: clock.now() });
    try {
      await handlers[name](deps, payload, { count: job.attemptsStarted, isShared, trace });
    } catch (error) {
      if (error instanceof HandedOver) throw error;
      // A handler that threw has decided nothing: the hold and the caller still wait.
      log.error({ err: error, pool, requestId, ...trace?.ids }, "a call could not be run");
      await endWithoutRunning(deps, payload, couldNotRun(error), trace);
    } finally {
      trace?.call?.endAttempts({});
      trace?.span.end();
    }
  }

  async function runScheduled({ job }: TakenJob): Promise<void> {
    const name = job.name as JobName;
    // One that takes longer than its interval runs once, so that it does not take all slots.
    if ([...taken].some((other) => other.job !== job && other.job.name === name)) return;
    const payload = jobCatalog[name].payload.parse(job.data);
    await (handlers[name] as Handler<JobName>)(deps, payload as never, { count: job.attemptsStarted, isShared: false });
  }

  /** Only the loop waits for slots, so that at most one batch waits in part. */
  async function freeSlot(): Promise<void> {
    while (slotsTaken >= concurrency)
      await new Promise<void>((resolve) => {
        onFreeSlot = resolve;
      });
  }

  /** Resolves once all calls of the job are begun. */
  async function begin(job: Job, token: string): Promise<void> {
    const parts = pool === "maintenance" ? [job.data] : payloadsOf(job.data);
    const open = new Set(parts);
    lastTakenAt = clock.now();
    const held: TakenJob = { job, token, open, isLost: false, ended: Promise.withResolvers() };
    taken.add(held);
    const errors: Promise<unknown>[] = [];
    for (const part of parts) {
      await freeSlot();
      // The calls that were not begun are ended by the next delivery.
      if (held.isLost) break;
      slotsTaken++;
      const run = pool === "maintenance" ? runScheduled(held) : runCall(held, part, parts.length > 1);
      const ended = run.then(
        () => void open.delete(part),
        (error: unknown) => error,
      );
      errors.push(ended);
      void ended.then(() => {
        slotsTaken--;
        onFreeSlot();
      });
    }
    void end(held, errors);
  }

  /** Acknowledges the job when all its calls have ended. */
  async function end(held: TakenJob, errors: readonly Promise<unknown>[]): Promise<void> {
    const { job, token } = held;
    const error = (await Promise.all(errors)).find((each) => each !== undefined);
    try {
      if (error instanceof HandedOver) await job.moveToDelayed(Date.now(), token);
      else if (error === undefined) await job.moveToCompleted(undefined, token, false);
      else {
        log.error({ err: error, job: job.name, id: job.id }, "a job failed");
        await job.moveToFailed(error as Error, token);
      }
    } catch (unacknowledged) {
      // If another worker does not have the job by now, it gets it when the lock has run out.
      log.warn({ err: (unacknowledged as Error).message, pool, id: job.id }, "a job could not be acknowledged");
    }
    taken.delete(held);
    held.ended.resolve();
  }

  async function takeJobs(): Promise<void> {
    while (!isStopped) {
      await freeSlot();
      const token = `${worker.id}:${tokensMade++}`;
      try {
        asking = worker.getNextJob(token);
        const job = await asking;
        if (job) await begin(job, token);
        // Wait for BullMQ's marker before asking again: it is set whenever a job is handed out, and an empty queue is dear to ask.
        Object.assign(worker, { drained: true });
      } catch (error) {
        log.warn({ err: (error as Error).message, pool }, "taking a job");
        await sleep(clock, retryMs);
      }
    }
  }

  const renew = oneAtATime(log, "renewing the locks of jobs", async () => {
    const held = [...taken].filter(({ isLost }) => !isLost);
    if (held.length === 0) return;
    const ids = held.map(({ job }) => job.id as string);
    const tokens = held.map(({ token }) => token);
    const lost = new Set(await worker.extendJobLocks(ids, tokens, lockMs));
    for (const each of held) {
      const { job, open } = each;
      each.isLost = lost.has(job.id as string);
      if (each.isLost)
        for (const part of open) running.abort(replyAddress.safeParse(part).data?.requestId ?? "", "lost");
      // A later delivery could not tell an answer that was delivered from one that was lost with the API.
      else if (open.size > 0 && open.size < payloadsOf(job.data).length)
        await job.updateData({ v: 1, calls: [...open] });
    }
  });

  const stopRenewing = clock.every(renewMs, () => void renew());
  void worker.startStalledCheckTimer();
  const taking = takeJobs();

  return {
    pool,
    load: () => ({ free: concurrency - slotsTaken, running: slotsTaken }),
    /** Unix milliseconds: when it last took a job, at first when it started. */
    lastTakenAt: () => lastTakenAt,
    /** Takes no more jobs. Resolves when none is being handed out any more: the last one may come after the call. */
    async pause(): Promise<void> {
      isStopped = true;
      await worker.close(true);
      await asking.catch(() => undefined);
    },
    /** Resolves when all jobs that were taken have ended, also those of whose calls some wait for a slot. */
    async idle(): Promise<void> {
      while (taken.size > 0) await Promise.all([...taken].map(({ ended }) => ended.promise));
    },
    /** Waits for running jobs without a limit: abort them first. */
    async close(): Promise<void> {
      await taking;
      await Promise.all([...taken].map(({ ended }) => ended.promise));
      stopRenewing();
    },
  };
}
