import { setImmediate as endOfTurn } from "node:timers/promises";
import { Queue } from "bullmq";
import type { ObserveWrite } from "#platform/concurrency/group-commit";
import type { Uses } from "#platform/uses";
import { backendOf } from "./call-backend.ts";
import {
  type DetachedCallJob,
  isTextPool,
  type JobPayload,
  jobCatalog,
  type PaidCall,
  type PaidJobName,
  type Pool,
  textPools,
} from "./catalog.ts";
import { createReceiverRanks } from "./receiver-ranks.ts";
import { createShards, prefixOf, shardOf, sharedKey } from "./shards.ts";

const maxGroupCalls = 16;
const maxGroupBytes = 256 * 1024;
/** Numbers of the caller's other calls in flight at which each further priority class begins. */
const priorityClasses = [1, 4, 16, 64];

/**
 * BullMQ's priority: lower numbers go first. In each class jobs of detached calls follow the others, and have even numbers,
 * so that both can be counted by themselves.
 */
const priorityOf = (inFlight: number, isDetached = false) =>
  1 + 2 * priorityClasses.filter((from) => inFlight >= from).length + (isDetached ? 1 : 0);

/** The queue job that carries a call. */
export interface QueuedJob {
  readonly pool: Pool;
  readonly queue: string;
  readonly id: string;
  /** The number of calls that the job carries. */
  readonly calls: number;
}

interface CallGroup {
  readonly calls: PaidCall[];
  bytes: number;
  readonly job: Promise<QueuedJob>;
}

/** All BullMQ priorities in use. */
const priorities = Array.from({ length: 2 * (priorityClasses.length + 1) }, (_, i) => i + 1);
const isOfDetached = (priority: number) => priority % 2 === 0;
/** Lines of batches follow everything else. */
const linePriority = priorities.length + 1;
const priorityRanges = {
  all: priorities,
  calls: priorities.filter((priority) => !isOfDetached(priority)),
  detached: priorities.filter(isOfDetached),
} as const;
/** BullMQ's scores are the priority times this, plus a counter. */
const priorityStep = 2 ** 32;
const scoresOf = (priority: number) => [priority * priorityStep, (priority + 1) * priorityStep - 1] as const;
/** The id of a scheduled job's run, with the time at which it was due. */
const scheduledRun = /^repeat:.*:(\d+)$/;

const earliest = (times: readonly number[]) => (times.length > 0 ? Math.min(...times) : undefined);

/** The id of a group's job ends in the number of its calls; other jobs carry one. */
const callsOf = (id: string) => Number(/-(\d+)$/.exec(id)?.[1] ?? 1);

const scheduled = Object.entries(jobCatalog).flatMap(([name, job]) =>
  "everyMs" in job ? [{ name, pool: job.pool, everyMs: job.everyMs }] : [],
);
const schedulingPools = [...new Set(scheduled.map(({ pool }) => pool))];

export function createQueues(deps: Uses<"redis" | "log"> & { observe?: ObserveWrite; chatShards?: number }) {
  const { redis, observe, log, chatShards = 1 } = deps;
  /** Groups that still accept calls. */
  const groups = new Map<string, CallGroup>();
  let groupsMade = 0;
  const shards = createShards({ redis, own: chatShards });
  const rankOf = createReceiverRanks();
  const opened = new Map<string, Queue>();

  function queueOf(name: string): Queue {
    let queue = opened.get(name);
    if (queue) return queue;
    const options = {
      connection: redis,
      prefix: prefixOf(name),
      skipWaitingForReady: true,
      skipVersionCheck: true,
      // BullMQ's events are not used.
      streams: { events: { maxLen: 0 } },
      defaultJobOptions: {
        attempts: 1,
        removeOnComplete: true,
        removeOnFail: { age: 3_600, count: 200 },
      },
    };
    queue = new Queue(name, options, backendOf(name, redis));
    queue.on("error", (error) => log.warn({ err: error.message, queue: name }, "error of a queue"));
    opened.set(name, queue);
    return queue;
  }

  const queuesOf = (pool: Pool) => shards.namesOf(pool).map(queueOf);
  /** The priorities to look at. Most queues are empty most of the time, which one command tells. */
  const classesIn = async (queue: Queue, of: keyof typeof priorityRanges) =>
    (await redis.zcard(queue.toKey("prioritized"))) > 0 ? priorityRanges[of] : [];
  const idsOf = (queue: Queue, priority: number) =>
    redis.zrangebyscore(queue.toKey("prioritized"), ...scoresOf(priority));
  const queueFor = (pool: Pool, account: string) => (pool === "chat" ? shardOf(account, chatShards) : pool);

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

  /** The job's id begins with the API instance's, so that ids alone show whether an instance has jobs. */
  function addGroup(
    name: PaidJobName,
    queue: string,
    calls: readonly PaidCall[],
    replyTo: string,
    priority: number,
  ): Promise<QueuedJob> {
    const id = `${replyTo}-${groupsMade++}-${calls.length}`;
    return add(name, queue, { id, calls: calls.length }, { v: 1, calls }, priority);
  }

  /** Groups calls admitted in one turn of the event loop. BullMQ's work for a job is half of that for a call. */
  function joinGroup(
    name: PaidJobName,
    queue: string,
    payload: PaidCall,
    bytes: number,
    priority: number,
  ): Promise<QueuedJob> {
    const { replyTo } = payload;
    const key = `${name} ${queue} ${priority} ${replyTo}`;
    let group = groups.get(key);
    if (!group || group.calls.length === maxGroupCalls || group.bytes + bytes > maxGroupBytes) {
      const calls: PaidCall[] = [];
      const job = endOfTurn().then(() => {
        groups.delete(key);
        return addGroup(name, queue, calls, replyTo, priority);
      });
      group = { calls, bytes: 0, job };
      groups.set(key, group);
    }
    group.calls.push(payload);
    group.bytes += bytes;
    return group.job;
  }

  /** Returns the unix milliseconds since which a queue's oldest waiting job has waited. Undefined if none waits. */
  async function oldestIn(name: string, of: keyof typeof priorityRanges = "all"): Promise<number | undefined> {
    const queue = queueOf(name);
    const key = queue.toKey("prioritized");
    // Jobs of one priority are in order of arrival. Jobs without a priority, the scheduled ones, are in a list.
    const heads = await Promise.all([
      of === "detached" ? undefined : redis.lindex(queue.toKey("wait"), -1),
      ...priorityRanges[of].map(async (priority) => {
        const [id] = await redis.zrangebyscore(key, ...scoresOf(priority), "LIMIT", 0, 1);
        return id;
      }),
    ]);
    const since = await Promise.all(
      heads.map(async (id) => {
        if (!id) return null;
        return scheduledRun.exec(id)?.[1] ?? (await redis.hget(queue.toKey(id), "timestamp"));
      }),
    );
    // A job that a worker has since taken and ended has no time.
    return earliest(since.flatMap((time) => (time === null ? [] : [Number(time)])));
  }

  return {
    /** The queues of a pool, as far as they are known now. */
    namesOf: shards.namesOf,
    /** Learns which shards other processes use. An API instance announces its own once a second. */
    readShards: shards.read,
    announceShards: shards.announce,
    /** `inFlight`: the caller's other calls. They lower the priority, so that a burst does not starve other callers. */
    enqueue(name: PaidJobName, payload: PaidCall, inFlight: number): Promise<QueuedJob> {
      const { requestId, replyTo, body, idempotencyKeyId } = payload;
      const priority = priorityOf(inFlight);
      const { pool } = jobCatalog[name];
      const queue = queueFor(pool, payload.account);
      // Other processes find these by the request's id.
      if (!isTextPool(pool) || idempotencyKeyId !== undefined)
        return add(name, queue, { id: requestId, calls: 1 }, payload, priority);
      return "json" in body
        ? joinGroup(name, queue, payload, Buffer.byteLength(body.json), priority)
        : addGroup(name, queue, [payload], replyTo, priority);
    },
    /** Enqueues a call that is stored in MongoDB. Adds nothing if its job is in the queue already. */
    enqueueDetached(name: PaidJobName, call: DetachedCallJob["detachedCall"], inFlight: number): Promise<QueuedJob> {
      const queue = queueFor(jobCatalog[name].pool, call.account);
      const data: DetachedCallJob = { v: 1, detachedCall: call };
      return add(name, queue, { id: call.requestId, calls: 1 }, data, priorityOf(inFlight, true));
    },
    /** Enqueues a line of a batch, behind all calls of others. */
    enqueueLine(name: PaidJobName, payload: PaidCall): Promise<QueuedJob> {
      const { requestId, body, account } = payload;
      const { pool } = jobCatalog[name];
      const queue = queueFor(pool, account);
      if (!isTextPool(pool)) return add(name, queue, { id: requestId, calls: 1 }, payload, linePriority);
      return "json" in body
        ? joinGroup(name, queue, payload, Buffer.byteLength(body.json), linePriority)
        : addGroup(name, queue, [payload], payload.replyTo, linePriority);
    },
    /** Adds nothing for a receiver of webhooks whose job is in the queue, or running, already. */
    async enqueueReceivers(receivers: readonly Omit<JobPayload<"send-webhooks">, "v">[]): Promise<void> {
      // A failed job would keep its id, and no other could be added.
      const jobs = receivers.map(({ account, receiver }) => ({
        name: "send-webhooks",
        data: { v: 1, account, receiver } satisfies JobPayload<"send-webhooks">,
        opts: { jobId: receiver, removeOnFail: true, priority: priorityOf(rankOf(account, receiver)) },
      }));
      if (jobs.length > 0) await queueOf(jobCatalog["send-webhooks"].pool).addBulk(jobs);
    },
    /** Enqueues the check of a credential. */
    async enqueueCheck(account: string, check: string): Promise<void> {
      const name = "check-provider-key";
      const data: JobPayload<typeof name> = { v: 1, account, check };
      await queueOf(jobCatalog[name].pool).add(name, data, { jobId: check, removeOnFail: true });
    },
    /** Adds nothing if that job is in the queue, or running, already. */
    async enqueueRewrap(): Promise<void> {
      const name = "rewrap-secrets";
      await queueOf(jobCatalog[name].pool).add(name, { v: 1 }, { jobId: name, removeOnFail: true });
    },
    /**
     * Returns true if no worker has the job or will get it; the job may also have just ended. Returns false if a worker
     * has the job, or if it also carries other calls.
     */
    remove: async ({ queue, id, calls }: Omit<QueuedJob, "pool">): Promise<boolean> =>
      calls === 1 && (await queueOf(queue).remove(id)) === 1,
    /** Returns true if no worker has the job of a detached call or will get it. */
    removeDetached: async (
      name: PaidJobName,
      { account, requestId }: DetachedCallJob["detachedCall"],
    ): Promise<boolean> => (await queueOf(queueFor(jobCatalog[name].pool, account)).remove(requestId)) === 1,
    /** Returns true if a worker has the job or may still get it. */
    async isPending(pool: Pool, id: string): Promise<boolean> {
      const states = await Promise.all(queuesOf(pool).map((queue) => queue.getJobState(id)));
      return states.some((state) => state !== "completed" && state !== "failed" && state !== "unknown");
    },
    /** Returns the position of a call's job among the waiting jobs, counting from 1, or undefined if it has ended. */
    async placeOf(pool: Pool, account: string, id: string): Promise<number | "running" | undefined> {
      const queue = queueOf(queueFor(pool, account));
      const before = await redis.zrank(queue.toKey("prioritized"), id);
      if (before !== null) return before + 1;
      const state = await queue.getJobState(id);
      if (state === "prioritized" || state === "waiting") return 1;
      return state === "completed" || state === "failed" || state === "unknown" ? undefined : "running";
    },
    /** Returns true if a text pool has a job with calls of this API instance that have no `Idempotency-Key`. */
    async hasJobsOf(instance: string): Promise<boolean> {
      // Jobs of detached calls may be many, and none of them is an instance's.
      const ids = textPools.flatMap(queuesOf).flatMap((queue) => {
        const others = queue.getRanges(["wait", "delayed", "active"], 0, -1);
        return [others, ...[...priorityRanges.calls, linePriority].map((priority) => idsOf(queue, priority))];
      });
      return (await Promise.all(ids)).flat().some((id) => id.startsWith(`${instance}-`));
    },
    /** Counts the waiting calls whose callers wait. */
    async backlog(pool: Pool): Promise<number> {
      const waiting = queuesOf(pool).map(async (queue) => {
        const others = redis.lrange(queue.toKey("wait"), 0, -1);
        const [ids, classes] = await Promise.all([others, classesIn(queue, "calls")]);
        return [ids, ...(await Promise.all(classes.map((priority) => idsOf(queue, priority))))].flat();
      });
      return (await Promise.all(waiting)).flat().reduce((calls, id) => calls + callsOf(id), 0);
    },
    /** Counts the waiting jobs of detached calls. */
    async detachedBacklog(pool: Pool): Promise<number> {
      const counts = queuesOf(pool).map(async (queue) => {
        const key = queue.toKey("prioritized");
        const classes = await classesIn(queue, "detached");
        return Promise.all(classes.map((priority) => redis.zcount(key, ...scoresOf(priority))));
      });
      return (await Promise.all(counts)).flat().reduce((sum, count) => sum + count, 0);
    },
    /** Returns the unix milliseconds since which the pool's oldest waiting job has waited. Undefined if none waits. */
    async oldestWaiting(pool: Pool, of: "calls" | "detached" = "calls"): Promise<number | undefined> {
      const times = await Promise.all(shards.namesOf(pool).map((name) => oldestIn(name, of)));
      return earliest(times.filter((time) => time !== undefined));
    },
    oldestIn,
    /**
     * Returns unix milliseconds. Jobs added before that time may be lost, because Redis, or the cluster node that holds
     * a queue, started without data then.
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
    /** Registers the scheduled jobs again if Redis has lost them. */
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
