import { setImmediate as endOfTurn } from "node:timers/promises";
import { Queue } from "bullmq";
import type { ObserveWrite } from "#platform/group-commit";
import type { Uses } from "#platform/uses";
import { isTextPool, jobCatalog, type PaidCall, type PaidJobName, type Pool, textPools } from "./catalog.ts";
import { createShards, prefixOf, shardOf, sharedKey } from "./shards.ts";

const maxBatchCalls = 16;
const maxBatchBytes = 256 * 1024;
/** The caller's other calls in flight from which each further class of priority counts. */
const priorityClasses = [1, 4, 16, 64];

const priorityOf = (inFlight: number) => 1 + priorityClasses.filter((from) => inFlight >= from).length;

/** The job that carries a call. */
export interface QueuedJob {
  readonly pool: Pool;
  /** The name of the pool's queue that it is in. */
  readonly queue: string;
  readonly id: string;
  /** The number of calls that it carries. */
  readonly calls: number;
}

interface Batch {
  readonly calls: PaidCall[];
  bytes: number;
  readonly job: Promise<QueuedJob>;
}

/** A batch's id ends in the number of its calls; other jobs carry one. */
const priorities = Array.from({ length: priorityClasses.length + 1 }, (_, i) => i + 1);
/** BullMQ's scores are a priority times this, and a counter. */
const priorityStep = 2 ** 32;
/** A run of a scheduled job, with the time at which it was due. */
const scheduledRun = /^repeat:.*:(\d+)$/;

const earliest = (times: readonly number[]) => (times.length > 0 ? Math.min(...times) : undefined);

const callsOf = (id: string) => Number(/-(\d+)$/.exec(id)?.[1] ?? 1);

/** `chatShards`: of this process, see `shards.ts`. */
const scheduled = Object.entries(jobCatalog).flatMap(([name, job]) =>
  "everyMs" in job ? [{ name, pool: job.pool, everyMs: job.everyMs }] : [],
);
const schedulingPools = [...new Set(scheduled.map(({ pool }) => pool))];

export function createQueues(deps: Uses<"redis" | "log"> & { observe?: ObserveWrite; chatShards?: number }) {
  const { redis, observe, log, chatShards = 1 } = deps;
  /** Groups that still take calls. */
  const batches = new Map<string, Batch>();
  let batchesMade = 0;
  const shards = createShards({ redis, own: chatShards });
  const opened = new Map<string, Queue>();

  function queueOf(name: string): Queue {
    let queue = opened.get(name);
    if (queue) return queue;
    queue = new Queue(name, {
      connection: redis,
      prefix: prefixOf(name),
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
    queue.on("error", (error) => log.warn({ err: error.message, queue: name }, "queue"));
    opened.set(name, queue);
    return queue;
  }

  const queuesOf = (pool: Pool) => shards.namesOf(pool).map(queueOf);

  /** Registers the scheduled jobs. Every worker may do so. */
  async function schedule(): Promise<void> {
    for (const { name, pool, everyMs } of scheduled)
      await queueOf(pool).upsertJobScheduler(name, { every: everyMs }, { name, data: { v: 1 } });
  }

  async function add(
    name: PaidJobName,
    queue: string,
    { id, calls }: { id: string; calls: number },
    data: object,
    priority: number,
  ): Promise<QueuedJob> {
    const startedAt = performance.now();
    await queueOf(queue).add(name, data, { jobId: id, priority });
    observe?.(calls, (performance.now() - startedAt) / 1_000);
    return { pool: jobCatalog[name].pool, queue, id, calls };
  }

  /** Its id begins with the API instance's, so that ids alone tell whether an instance has jobs. */
  function addBatch(
    name: PaidJobName,
    queue: string,
    calls: readonly PaidCall[],
    replyTo: string,
    priority: number,
  ): Promise<QueuedJob> {
    const id = `${replyTo}-${batchesMade++}-${calls.length}`;
    return add(name, queue, { id, calls: calls.length }, { v: 1, calls }, priority);
  }

  /** Calls that are admitted in one turn of the event loop go together. BullMQ's cost of a job is half of that of a call. */
  function joinBatch(
    name: PaidJobName,
    queue: string,
    payload: PaidCall,
    bytes: number,
    priority: number,
  ): Promise<QueuedJob> {
    const { replyTo } = payload;
    const key = `${name} ${queue} ${priority} ${replyTo}`;
    let batch = batches.get(key);
    if (!batch || batch.calls.length === maxBatchCalls || batch.bytes + bytes > maxBatchBytes) {
      const calls: PaidCall[] = [];
      const job = endOfTurn().then(() => {
        batches.delete(key);
        return addBatch(name, queue, calls, replyTo, priority);
      });
      batch = { calls, bytes: 0, job };
      batches.set(key, batch);
    }
    batch.calls.push(payload);
    batch.bytes += bytes;
    return batch.job;
  }

  /** Unix milliseconds since when the job that has waited longest in a queue does; undefined if none waits. */
  async function oldestIn(name: string): Promise<number | undefined> {
    const queue = queueOf(name);
    const key = queue.toKey("prioritized");
    // Within a priority they are in the order in which they came. Jobs without one, the scheduled ones, are in a list.
    const heads = await Promise.all([
      redis.lindex(queue.toKey("wait"), -1),
      ...priorities.map(async (priority) => {
        const [from, to] = [priority * priorityStep, (priority + 1) * priorityStep - 1];
        const [id] = await redis.zrangebyscore(key, from, to, "LIMIT", 0, 1);
        return id;
      }),
    ]);
    const since = await Promise.all(
      heads.map(async (id) => {
        if (!id) return null;
        return scheduledRun.exec(id)?.[1] ?? (await redis.hget(queue.toKey(id), "timestamp"));
      }),
    );
    // A job that a worker took meanwhile, and ended, has no time.
    return earliest(since.flatMap((time) => (time === null ? [] : [Number(time)])));
  }

  return {
    /** The queues of a pool, as far as is known now. */
    namesOf: shards.namesOf,
    /** Learns which shards other processes use. An API instance announces its own, once a second. */
    readShards: shards.read,
    announceShards: shards.announce,
    /** `inFlight`: the caller's other calls. They lower the priority, so that a burst does not starve other callers. */
    enqueue(name: PaidJobName, payload: PaidCall, inFlight: number): Promise<QueuedJob> {
      const { requestId, replyTo, body, idempotencyKeyId } = payload;
      const priority = priorityOf(inFlight);
      const { pool } = jobCatalog[name];
      const queue = pool === "chat" ? shardOf(payload.account, chatShards) : pool;
      // Other processes find these by the request's id.
      if (!isTextPool(pool) || idempotencyKeyId !== undefined)
        return add(name, queue, { id: requestId, calls: 1 }, payload, priority);
      return "json" in body
        ? joinBatch(name, queue, payload, Buffer.byteLength(body.json), priority)
        : addBatch(name, queue, [payload], replyTo, priority);
    },
    /** False: a worker has the job, or it carries other calls too. True: no worker has it or will get it; it may have just ended. */
    remove: async ({ queue, id, calls }: Omit<QueuedJob, "pool">): Promise<boolean> =>
      calls === 1 && (await queueOf(queue).remove(id)) === 1,
    /** True if a worker has the job or may still get it. */
    async isPending(pool: Pool, id: string): Promise<boolean> {
      const states = await Promise.all(queuesOf(pool).map((queue) => queue.getJobState(id)));
      return states.some((state) => state !== "completed" && state !== "failed" && state !== "unknown");
    },
    /** Where the job of one call is: its place among those that wait, from 1. Undefined: it has ended. */
    async placeOf(pool: Pool, id: string): Promise<number | "running" | undefined> {
      const queue = queueOf(pool);
      const before = await redis.zrank(queue.toKey("prioritized"), id);
      if (before !== null) return before + 1;
      const state = await queue.getJobState(id);
      if (state === "prioritized" || state === "waiting") return 1;
      return state === "completed" || state === "failed" || state === "unknown" ? undefined : "running";
    },
    /** True if a job that carries calls of this API instance without an `Idempotency-Key` is in a text pool. */
    async hasJobsOf(instance: string): Promise<boolean> {
      const ids = await Promise.all(
        textPools
          .flatMap(queuesOf)
          .map((queue) => queue.getRanges(["wait", "prioritized", "delayed", "active"], 0, -1)),
      );
      return ids.flat().some((id) => id.startsWith(`${instance}-`));
    },
    /** Calls that wait. */
    async backlog(pool: Pool): Promise<number> {
      const ids = await Promise.all(queuesOf(pool).map((queue) => queue.getRanges(["wait", "prioritized"], 0, -1)));
      return ids.flat().reduce((calls, id) => calls + callsOf(id), 0);
    },
    /** Unix milliseconds since when the job that has waited longest does; undefined if none waits. */
    async oldestWaiting(pool: Pool): Promise<number | undefined> {
      const times = await Promise.all(shards.namesOf(pool).map(oldestIn));
      return earliest(times.filter((time) => time !== undefined));
    },
    /** The same for one queue of a pool. */
    oldestIn,
    /**
     * Unix milliseconds: jobs that were added before it may be lost, because Redis, or the node of a cluster that has a queue,
     * began without data then.
     */
    async emptySince(): Promise<number> {
      const since = shards.all().map(async (name) => {
        const key = sharedKey(name, "since");
        await redis.set(key, Date.now(), "NX");
        return Number(await redis.get(key));
      });
      return Math.max(...(await Promise.all(since)));
    },
    schedule,
    /** Registers them again if Redis has lost them. */
    async keepScheduled(): Promise<void> {
      const counts = await Promise.all(schedulingPools.map((pool) => queueOf(pool).getJobSchedulersCount()));
      if (counts.includes(0)) await schedule();
    },
    async close(): Promise<void> {
      await Promise.all([...opened.values()].map((queue) => queue.close()));
    },
  };
}

export type Queues = ReturnType<typeof createQueues>;
