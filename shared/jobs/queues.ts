import { setImmediate as endOfTurn } from "node:timers/promises";
import { Queue } from "bullmq";
import type { Redis } from "ioredis";
import type { ObserveWrite } from "#platform/group-commit";
import type { Logger } from "#platform/logger";
import { isTextPool, jobCatalog, type PaidCall, type PaidJobName, type Pool, pools, textPools } from "./catalog.ts";

/** Made when it is missing: by the first process, and after Redis has lost its data. */
const sinceKey = "jobs:since";
const maxBatchCalls = 16;
const maxBatchBytes = 256 * 1024;
/** The caller's other calls in flight from which each further class of priority counts. */
const priorityClasses = [1, 4, 16, 64];

const priorityOf = (inFlight: number) => 1 + priorityClasses.filter((from) => inFlight >= from).length;

/** The job that carries a call. */
export interface QueuedJob {
  readonly pool: Pool;
  readonly id: string;
  /** How many calls it carries. */
  readonly calls: number;
}

interface Batch {
  readonly calls: PaidCall[];
  bytes: number;
  readonly job: Promise<QueuedJob>;
}

/** A batch's id ends in the number of its calls; other jobs carry one. */
const priorities = Array.from({ length: priorityClasses.length + 1 }, (_, i) => i + 1);
/** Of BullMQ's scores, which are a priority times this and a counter. */
const priorityStep = 2 ** 32;
/** A run of a scheduled job, with the time at which it was due. */
const scheduledRun = /^repeat:.*:(\d+)$/;

const callsOf = (id: string) => Number(/-(\d+)$/.exec(id)?.[1] ?? 1);

export function createQueues(deps: { redis: Redis; observe?: ObserveWrite; log: Logger }) {
  /** Those that still take calls. */
  const batches = new Map<string, Batch>();
  let batchesMade = 0;
  const queues = Object.fromEntries(
    pools.map((pool) => {
      const queue = new Queue(pool, {
        connection: deps.redis,
        skipWaitingForReady: true,
        skipVersionCheck: true,
        // Nobody reads BullMQ's events.
        streams: { events: { maxLen: 0 } },
        defaultJobOptions: {
          attempts: 1,
          removeOnComplete: true,
          removeOnFail: { age: 3_600, count: 200 },
        },
      });
      queue.on("error", (error) => deps.log.warn({ err: error.message, pool }, "queue"));
      return [pool, queue];
    }),
  ) as unknown as Record<Pool, Queue>;

  async function add(name: PaidJobName, { id, calls }: { id: string; calls: number }, data: object, priority: number) {
    const { pool } = jobCatalog[name];
    const startedAt = performance.now();
    await queues[pool].add(name, data, { jobId: id, priority });
    deps.observe?.(calls, (performance.now() - startedAt) / 1_000);
    return { pool, id, calls };
  }

  /** Its id begins with the API instance's, so that ids alone tell whether an instance has jobs. */
  function addBatch(name: PaidJobName, calls: readonly PaidCall[], replyTo: string, priority: number) {
    const id = `${replyTo}-${batchesMade++}-${calls.length}`;
    return add(name, { id, calls: calls.length }, { v: 1, calls }, priority);
  }

  /** What is admitted in one turn of the event loop goes together. BullMQ's cost of a job is half of that of a call. */
  function joinBatch(name: PaidJobName, payload: PaidCall, bytes: number, priority: number): Promise<QueuedJob> {
    const { replyTo } = payload;
    const key = `${name} ${priority} ${replyTo}`;
    let batch = batches.get(key);
    if (!batch || batch.calls.length === maxBatchCalls || batch.bytes + bytes > maxBatchBytes) {
      const calls: PaidCall[] = [];
      const job = endOfTurn().then(() => {
        batches.delete(key);
        return addBatch(name, calls, replyTo, priority);
      });
      batch = { calls, bytes: 0, job };
      batches.set(key, batch);
    }
    batch.calls.push(payload);
    batch.bytes += bytes;
    return batch.job;
  }

  return {
    /** `inFlight`: the caller's other calls. They lower the priority, so that a burst does not starve other callers. */
    enqueue(name: PaidJobName, payload: PaidCall, inFlight: number): Promise<QueuedJob> {
      const { requestId, replyTo, body, idempotencyKeyId } = payload;
      const priority = priorityOf(inFlight);
      // Other processes find these by the request's id.
      if (!isTextPool(jobCatalog[name].pool) || idempotencyKeyId !== undefined)
        return add(name, { id: requestId, calls: 1 }, payload, priority);
      return "json" in body
        ? joinBatch(name, payload, Buffer.byteLength(body.json), priority)
        : addBatch(name, [payload], replyTo, priority);
    },
    /** False: a worker has the job, or it carries other calls too. True: no worker has it or will get it; it may have just ended. */
    remove: async ({ pool, id, calls }: QueuedJob): Promise<boolean> =>
      calls === 1 && (await queues[pool].remove(id)) === 1,
    /** Whether a worker has the job or may still get it. */
    async isPending(pool: Pool, id: string): Promise<boolean> {
      const state = await queues[pool].getJobState(id);
      return state !== "completed" && state !== "failed" && state !== "unknown";
    },
    /** Whether a job that carries calls of this API instance without an `Idempotency-Key` is in a text pool. */
    async hasJobsOf(instance: string): Promise<boolean> {
      const ids = await Promise.all(
        textPools.map((pool) => queues[pool].getRanges(["wait", "prioritized", "delayed", "active"], 0, -1)),
      );
      return ids.flat().some((id) => id.startsWith(`${instance}-`));
    },
    /** Calls that wait. */
    async backlog(pool: Pool): Promise<number> {
      const ids = await queues[pool].getRanges(["wait", "prioritized"], 0, -1);
      return ids.reduce((calls, id) => calls + callsOf(id), 0);
    },
    /** Unix milliseconds since when the job that has waited longest does; undefined if none waits. */
    async oldestWaiting(pool: Pool): Promise<number | undefined> {
      const queue = queues[pool];
      const key = queue.toKey("prioritized");
      // Within a priority they are in the order in which they came. Jobs without one, the scheduled ones, are in a list.
      const heads = await Promise.all([
        deps.redis.lindex(queue.toKey("wait"), -1),
        ...priorities.map(async (priority) => {
          const [from, to] = [priority * priorityStep, (priority + 1) * priorityStep - 1];
          const [id] = await deps.redis.zrangebyscore(key, from, to, "LIMIT", 0, 1);
          return id;
        }),
      ]);
      const since = await Promise.all(
        heads.map(async (id) => {
          if (!id) return null;
          return scheduledRun.exec(id)?.[1] ?? (await deps.redis.hget(queue.toKey(id), "timestamp"));
        }),
      );
      // A job that a worker took meanwhile, and ended, has no time.
      const times = since.flatMap((time) => (time === null ? [] : [Number(time)]));
      return times.length > 0 ? Math.min(...times) : undefined;
    },
    /** Unix milliseconds: jobs that were added before it may be lost, because Redis began without data then. */
    async emptySince(): Promise<number> {
      await deps.redis.set(sinceKey, Date.now(), "NX");
      return Number(await deps.redis.get(sinceKey));
    },
    /** Registers the scheduled jobs. Every worker may do so. */
    async schedule(): Promise<void> {
      for (const [name, job] of Object.entries(jobCatalog))
        if ("everyMs" in job)
          await queues[job.pool].upsertJobScheduler(name, { every: job.everyMs }, { name, data: { v: 1 } });
    },
    async close(): Promise<void> {
      await Promise.all(Object.values(queues).map((queue) => queue.close()));
    },
  };
}

export type Queues = ReturnType<typeof createQueues>;
