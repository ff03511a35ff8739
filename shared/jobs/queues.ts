import { Queue } from "bullmq";
import type { Redis } from "ioredis";
import type { Logger } from "#platform/logger";
import { jobCatalog, type PaidCall, type PaidJobName, type Pool, pools, toPaidCall } from "./catalog.ts";

/** Made when it is missing: by the first process, and after Redis has lost its data. */
const sinceKey = "jobs:since";
const maxPriority = 2 ** 21 - 1;

export function createQueues(deps: { redis: Redis; log: Logger }) {
  const queues = Object.fromEntries(
    pools.map((pool) => {
      const queue = new Queue(pool, {
        connection: deps.redis,
        skipWaitingForReady: true,
        skipVersionCheck: true,
        defaultJobOptions: {
          attempts: 1,
          removeOnComplete: { age: 60, count: 200 },
          removeOnFail: { age: 3_600, count: 200 },
        },
      });
      queue.on("error", (error) => deps.log.warn({ err: error.message, pool }, "queue"));
      return [pool, queue];
    }),
  ) as unknown as Record<Pool, Queue>;

  return {
    /** `inFlight`: the account's other calls. They lower the priority, so that a burst does not starve other accounts. */
    async enqueue(name: PaidJobName, payload: PaidCall, inFlight: number): Promise<void> {
      await queues[jobCatalog[name].pool].add(name, payload, {
        jobId: payload.requestId,
        priority: Math.min(1 + inFlight, maxPriority),
      });
    },
    /** False: a worker has the job. True: no worker has it or will get it; it may have just ended. */
    remove: async (pool: Pool, requestId: string): Promise<boolean> => (await queues[pool].remove(requestId)) === 1,
    /** Whether a worker has the job or may still get it. */
    async isPending(pool: Pool, requestId: string): Promise<boolean> {
      const state = await queues[pool].getJobState(requestId);
      return state !== "completed" && state !== "failed" && state !== "unknown";
    },
    async backlog(pool: Pool): Promise<number> {
      const counts = await queues[pool].getJobCounts("wait", "prioritized");
      return (counts["wait"] ?? 0) + (counts["prioritized"] ?? 0);
    },
    /** Whether a text call that the API instance admitted waits or runs. */
    async hasJobsOf(instance: string): Promise<boolean> {
      const jobs = await queues.chat.getJobs(["active", "prioritized", "waiting", "delayed"]);
      return jobs.some((job) => toPaidCall(job.data)?.replyTo === instance);
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
