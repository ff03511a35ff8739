import { type Job, Worker } from "bullmq";
import { jobNeverBegan } from "#detached-calls";
import { noCapacity } from "#errors";
import {
  backendOf,
  callPools,
  type DetachedCallJob,
  detachedCallJob,
  isPool,
  type JobName,
  jobCatalog,
  type PaidCall,
  type PaidJobName,
  type Pool,
  paidCall,
  payloadsOf,
  pools,
  prefixOf,
  replyAddress,
} from "#jobs";
import { sleep } from "#platform/clock";
import { oneAtATime } from "#platform/concurrency/one-at-a-time";
import { retry } from "#platform/concurrency/retry";
import type { Config } from "#platform/config";
import { ConfigError } from "#platform/config-error";
import { randomBase62 } from "#platform/ids";
import type { RedisClient } from "#platform/redis";
import { type Handler, type HandlerDeps, handlers } from "./handlers/index.ts";
import { enqueueIfDue } from "./handlers/webhooks.ts";
import { endWithdrawn, endWithoutRunning, HandedOver } from "./run-call.ts";
import { beginDelivery } from "./tracing/call-trace.ts";

const retryMs = 1_000;
const startBackoff = { firstMs: 500, maxMs: 500 };

interface TakenJob {
  readonly job: Job;
  /** The worker of the queue that the job came from. */
  readonly worker: Worker;
  readonly token: string;
  /** The payloads of its calls that have not ended. */
  readonly open: Set<unknown>;
  /** The lock was lost, so another worker ends the job. */
  isLost: boolean;
  /** Resolves when its calls have ended and it is acknowledged. */
  readonly ended: PromiseWithResolvers<void>;
}

interface ServedQueue {
  readonly worker: Worker;
  lastTakenAt: number;
  /** The fetch of the next job, if one is in progress. */
  asking: Promise<Job | undefined>;
  /** Resolves when the queue's loop has ended. */
  taking: Promise<void>;
}

/** The pools that this process serves. Throws `ConfigError` for an unknown pool. */
export function poolsOf(config: Pick<Config, "WORKER_POOLS">): Pool[] {
  const named = [...new Set(config.WORKER_POOLS.split(","))];
  const unknown = named.find((pool) => !isPool(pool));
  if (unknown) throw new ConfigError(`WORKER_POOLS: there is no pool '${unknown}'; the pools are ${pools.join(", ")}.`);
  return named as Pool[];
}

const couldNotRun = (cause: unknown) => noCapacity("The call could not be run; nothing was charged.", 5, cause);

/**
 * Takes the jobs of one pool, and runs at most `concurrency` of their calls at once, whatever queue they come from. Payloads
 * are parsed again: another version of the API may have written them.
 *
 * BullMQ's own loop counts jobs, not calls, and when it has enough of them it sleeps until one ends: slots freed by some
 * calls of a group would stay idle while another call of the group streams. So we fetch jobs one by one, as soon as a slot
 * is free and no call waits for one (https://docs.bullmq.io/patterns/manually-fetching-jobs); BullMQ then leaves lock
 * renewal and acknowledgement to us, and still checks for stalled jobs.
 */
export function startPool(
  deps: HandlerDeps,
  {
    pool,
    queueNames,
    concurrency,
    lockMs,
    redis,
    observeWait,
  }: {
    pool: Pool;
    queueNames: readonly string[];
    concurrency: number;
    /** How long a job stays locked after the last renewal. */
    lockMs: number;
    redis: RedisClient;
    observeWait: (seconds: number) => void;
  },
) {
  const { log, running, replies, clock } = deps;
  const isOfCalls = (callPools as readonly Pool[]).includes(pool);
  const taken = new Set<TakenJob>();
  let slotsTaken = 0;
  /** The running calls that are lines of batches. */
  let lines = 0;
  let tokensMade = 0;
  let isStopped = false;
  const served = new Map<string, ServedQueue>();
  /** Callbacks that wait for a free slot. */
  const onFreeSlot: (() => void)[] = [];
  /** Resolves when the last queue that took its turn is done. */
  let turn: Promise<void> = Promise.resolve();

  function openWorker(queue: string): Worker {
    const options = {
      connection: redis,
      prefix: prefixOf(queue),
      lockDuration: lockMs,
      stalledInterval: lockMs / 2,
      // BullMQ's default fails a stalled job without calling the processor, and the caller gets no answer.
      maxStalledCount: 1_000_000,
      skipVersionCheck: true,
    };
    const worker = new Worker(queue, null, options, backendOf(queue, redis));
    worker.on("error", (error) => log.warn({ err: error.message, queue }, "error of a queue's worker"));
    void worker.startStalledCheckTimer();
    return worker;
  }

  /** Only the reply address could be parsed; the API instance settles the call. */
  async function refuse(data: unknown, error: unknown): Promise<void> {
    const { data: address } = replyAddress.safeParse(data);
    log.error({ err: error, pool, requestId: address?.requestId }, "the payload of a call is not valid");
    if (address) await replies.late(address.replyTo, address.requestId, couldNotRun(error), { undecided: true });
  }

  async function runCall(taken: TakenJob, data: unknown, isShared: boolean): Promise<void> {
    const { data: stored } = detachedCallJob.safeParse(data);
    if (stored) return runDetached(taken, stored.detachedCall);
    const { data: payload, error } = paidCall.safeParse(data);
    if (!payload) return refuse(data, error);
    if (clock.now() > (payload.batch?.queuedUntil ?? Number.POSITIVE_INFINITY))
      return endWithoutRunning(deps, payload, jobNeverBegan());
    await run(taken, payload, taken.job.attemptsStarted, isShared);
  }

  /** Runs a stored call, unless an earlier delivery has begun to. */
  async function runDetached(taken: TakenJob, { account, requestId }: DetachedCallJob["detachedCall"]): Promise<void> {
    const delivery = randomBase62(12);
    const started = await retry({ clock, backoff: startBackoff, signal: deps.ending }, () =>
      deps.detachedCalls.start(account, requestId, delivery),
    ).catch((error: unknown) => {
      throw deps.ending.aborted ? new HandedOver("the call was not started") : error;
    });
    if (started.kind === "ended") return;
    if (started.kind === "late") {
      await endWithdrawn(deps, { account, requestId }, { fields: jobNeverBegan().fields(), status: "expired" });
      return;
    }
    const { payload, kind } = started;
    await run(taken, payload, kind === "started" ? 1 : Math.max(2, taken.job.attemptsStarted), false);
  }

  async function run({ job }: TakenJob, payload: PaidCall, count: number, isShared: boolean): Promise<void> {
    const { requestId } = payload;
    // The clocks of two machines may differ.
    if (count === 1) observeWait(Math.max(0, clock.now() - payload.acceptedAt) / 1_000);
    const name = job.name as PaidJobName;
    const delivered = { job: name, pool, payload, count, enqueuedAt: job.timestamp };
    const trace = beginDelivery(deps.tracing, { ...delivered, now: clock.now() });
    if (payload.batch) lines++;
    try {
      await handlers[name](deps, payload, { count, isShared, trace });
    } catch (error) {
      if (error instanceof HandedOver) throw error;
      // A handler that threw has captured no cost: the hold is still open, and the caller still waits.
      log.error({ err: error, pool, requestId, ...trace?.ids }, "a call could not be run");
      await endWithoutRunning(deps, payload, couldNotRun(error), trace);
    } finally {
      if (payload.batch) lines--;
      trace?.call?.endAttempts({});
      trace?.span.end();
    }
  }

  /** Runs a job that is neither a call nor a receiver of webhooks. */
  async function runOther({ job }: TakenJob): Promise<void> {
    const name = job.name as JobName;
    if (!Object.hasOwn(jobCatalog, name)) throw new Error(`This version has no job '${name}'.`);
    // A scheduled job that takes longer than its interval runs only once at a time, so that it does not take all slots.
    const isScheduled = "everyMs" in jobCatalog[name];
    if (isScheduled && [...taken].some((other) => other.job !== job && other.job.name === name)) return;
    const payload = jobCatalog[name].payload.parse(job.data);
    await (handlers[name] as Handler<JobName>)(deps, payload as never, { count: job.attemptsStarted, isShared: false });
  }

  /** Sends the due deliveries of a receiver of webhooks. */
  async function runReceiver({ job, ended }: TakenJob): Promise<void> {
    const receiver = jobCatalog["send-webhooks"].payload.parse(job.data);
    await handlers["send-webhooks"](deps, receiver, { count: job.attemptsStarted, isShared: false });
    // A delivery that was recorded since the last look could not be enqueued while this job existed.
    deps.background.run(
      "due webhooks could not be enqueued; maintenance will",
      ended.promise.then(() => enqueueIfDue(deps, receiver)),
    );
  }

  async function freeSlot(): Promise<void> {
    while (slotsTaken >= concurrency) await new Promise<void>((resolve) => onFreeSlot.push(resolve));
  }

  /** Resolves once all calls of the job have begun. */
  async function begin(queue: ServedQueue, job: Job, token: string): Promise<void> {
    const parts = isOfCalls ? payloadsOf(job.data) : [job.data as unknown];
    const open = new Set(parts);
    queue.lastTakenAt = clock.now();
    const held: TakenJob = { job, worker: queue.worker, token, open, isLost: false, ended: Promise.withResolvers() };
    taken.add(held);
    const errors: Promise<unknown>[] = [];
    for (const part of parts) {
      await freeSlot();
      // The next delivery ends the calls that have not begun.
      if (held.isLost) break;
      slotsTaken++;
      const run = isOfCalls
        ? runCall(held, part, parts.length > 1)
        : job.name === "send-webhooks"
          ? runReceiver(held)
          : runOther(held);
      const ended = run.then(
        () => void open.delete(part),
        (error: unknown) => error,
      );
      errors.push(ended);
      void ended.then(() => {
        slotsTaken--;
        for (const go of onFreeSlot.splice(0)) go();
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
      // If no other worker has taken the job yet, one gets it when the lock expires.
      log.warn({ err: (unacknowledged as Error).message, pool, id: job.id }, "a job could not be acknowledged");
    }
    taken.delete(held);
    held.ended.resolve();
  }

  async function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const before = turn;
    const { promise, resolve } = Promise.withResolvers<void>();
    turn = promise;
    await before;
    try {
      return await work();
    } finally {
      resolve();
    }
  }

  /**
   * `block` waits some seconds for a job. Resolves once all of the job's calls have begun, with false if there was no job.
   */
  async function takeJob(queue: ServedQueue, block: boolean): Promise<boolean> {
    const { worker } = queue;
    const token = `${worker.id}:${tokensMade++}`;
    queue.asking = worker.getNextJob(token, { block });
    const job = await queue.asking;
    if (job) await begin(queue, job, token);
    // Makes BullMQ wait for its marker before the next fetch: polling an empty queue is expensive.
    Object.assign(worker, { drained: true });
    return job !== undefined;
  }

  /**
   * A job is taken only when a slot is free, so at most one group waits in part. If there are fewer free slots than queues,
   * the queues take turns; an empty queue then blocks like the others, and may take one job more than there are slots.
   */
  async function takeNext(queue: ServedQueue): Promise<void> {
    await freeSlot();
    const isScarce = concurrency - slotsTaken < served.size;
    const tryInTurn = async () => {
      await freeSlot();
      return isStopped || (await takeJob(queue, false));
    };
    if (isScarce && (await inTurn(tryInTurn))) return;
    if (!isStopped) await takeJob(queue, true);
  }

  async function takeJobs(name: string, queue: ServedQueue): Promise<void> {
    while (!isStopped)
      try {
        await takeNext(queue);
      } catch (error) {
        log.warn({ err: (error as Error).message, queue: name }, "a job could not be taken");
        await sleep(clock, retryMs);
      }
  }

  function serve(name: string): void {
    if (isStopped || served.has(name)) return;
    const queue: ServedQueue = {
      worker: openWorker(name),
      lastTakenAt: clock.now(),
      asking: Promise.resolve(undefined),
      taking: Promise.resolve(),
    };
    served.set(name, queue);
    queue.taking = takeJobs(name, queue);
  }

  async function renewIn(worker: Worker, held: readonly TakenJob[]): Promise<void> {
    const ids = held.map(({ job }) => job.id as string);
    const tokens = held.map(({ token }) => token);
    const lost = new Set(await worker.extendJobLocks(ids, tokens, lockMs));
    for (const each of held) {
      const { job, open } = each;
      each.isLost = lost.has(job.id as string);
      if (each.isLost)
        for (const part of open) running.abort(replyAddress.safeParse(part).data?.requestId ?? "", "lost");
      // Calls that have ended are removed from the job: a later delivery could not tell whether their answers were delivered
      // or lost with the API.
      else if (open.size > 0 && open.size < payloadsOf(job.data).length)
        await job.updateData({ v: 1, calls: [...open] });
    }
  }

  const renew = oneAtATime(log, "the locks of jobs could not be renewed", async () => {
    const held = Map.groupBy(
      [...taken].filter(({ isLost }) => !isLost),
      ({ worker }) => worker,
    );
    await Promise.all([...held].map(([worker, jobs]) => renewIn(worker, jobs)));
  });

  const stopRenewing = clock.every(lockMs / 4, () => void renew());
  for (const name of queueNames) serve(name);

  return {
    pool,
    load: () => ({ free: concurrency - slotsTaken, running: slotsTaken, lines }),
    /** Starts to take jobs from this queue as well. */
    serve,
    /** Unix milliseconds by queue: when it last took a job, or initially when it started. */
    lastTakenAt: (): ReadonlyMap<string, number> =>
      new Map([...served].map(([name, { lastTakenAt }]) => [name, lastTakenAt])),
    /** Stops taking jobs. Resolves when no fetch is in progress: the last job may arrive after the call. */
    async pause(): Promise<void> {
      isStopped = true;
      await Promise.all([...served.values()].map(({ worker }) => worker.close(true)));
      await Promise.allSettled([...served.values()].map(({ asking }) => asking));
    },
    /** Resolves when all jobs that were taken have ended, including those with calls that wait for a slot. */
    async idle(): Promise<void> {
      while (taken.size > 0) await Promise.all([...taken].map(({ ended }) => ended.promise));
    },
    /** Waits for running jobs without a limit: abort them first. */
    async close(): Promise<void> {
      await Promise.all([...served.values()].map(({ taking }) => taking));
      await Promise.all([...taken].map(({ ended }) => ended.promise));
      stopRenewing();
    },
  };
}
