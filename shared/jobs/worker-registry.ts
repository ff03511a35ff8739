import type { Redis } from "ioredis";
import { z } from "zod";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { type Pool, pools } from "./catalog.ts";
import type { Queues } from "./queues.ts";

const upstreamState = z.enum(["ready", "open", "no key"]);
// Any pool's name: a worker of a newer version may serve pools that are not known here.
const record = z.object({
  pools: z.record(z.string(), z.object({ free: z.int(), running: z.int() })),
  upstreams: z.record(z.string(), upstreamState),
});

/** What a worker process says of itself every second. */
export type WorkerRecord = z.infer<typeof record>;

const indexKey = "worker:index";
const recordKey = (worker: string) => `worker:${worker}`;
const lifeSeconds = 5;
const everyMs = 1_000;

/** Writes this worker's record every second until stopped; then it is gone at once. */
export function announce(deps: {
  worker: string;
  redis: Redis;
  clock: Clock;
  log: Logger;
  record: () => WorkerRecord;
}) {
  const { worker, redis, clock, log } = deps;
  // One write at a time: with Redis away they would pile up and all be written when it is back.
  let writing = false;
  const write = async () => {
    if (writing) return;
    writing = true;
    try {
      await Promise.all([
        redis.set(recordKey(worker), JSON.stringify(deps.record()), "EX", lifeSeconds),
        redis.zadd(indexKey, clock.now(), worker),
      ]);
    } catch (error) {
      log.warn({ err: (error as Error).message }, "presence");
    } finally {
      writing = false;
    }
  };
  const stop = clock.every(everyMs, () => void write());
  return {
    write,
    async stop() {
      stop();
      // A worker can stop while Redis is away: its record expires.
      if (redis.status === "ready") await Promise.all([redis.del(recordKey(worker)), redis.zrem(indexKey, worker)]);
    },
  };
}

/** All workers' records and the pools' backlogs, as one API instance last read them. */
export interface WorkerRegistry {
  start(): Promise<void>;
  stop(): void;
  /** Worker processes that serve the pool now. */
  serving(pool: Pool): number;
  /** Jobs that wait in the pool: as last read, and those added here since then for which no slot was free. */
  backlog(pool: Pool): number;
  added(pool: Pool): void;
  /** A call that was added has ended: its slot is free. */
  ended(pool: Pool): void;
  /** Best state of an upstream among the workers; `no key` also when no worker has ever answered. */
  upstream(id: string): "ready" | "open" | "no key";
  /** Whether any worker was ever seen. */
  known(): boolean;
}

const better = { "no key": 0, open: 1, ready: 2 } as const;

export function createWorkerRegistry(deps: {
  redis: Redis;
  queues: Queues;
  clock: Clock;
  log: Logger;
}): WorkerRegistry {
  const { redis, queues, clock, log } = deps;
  let workers: WorkerRecord[] = [];
  let upstreams = new Map<string, z.infer<typeof upstreamState>>();
  const backlogs = new Map<Pool, { waiting: number; free: number; sinceThen: number }>();
  let stop = () => {};
  let reading = false;

  async function readWorkers(): Promise<void> {
    const now = clock.now();
    const names = await redis.zrange(indexKey, "0", "-1", "WITHSCORES");
    const ids = names.filter((_, i) => i % 2 === 0);
    const values = ids.length > 0 ? await redis.mget(...ids.map(recordKey)) : [];
    const records: WorkerRecord[] = [];
    const lost: string[] = [];
    values.forEach((value, i) => {
      const parsed = value === null ? undefined : record.safeParse(JSON.parse(value));
      if (parsed?.success) records.push(parsed.data);
      else if (now - Number(names[2 * i + 1]) > 60_000) lost.push(ids[i] as string);
    });
    if (lost.length > 0) await redis.zrem(indexKey, ...lost);
    workers = records;
    // With no worker the last known list stays: models do not vanish while workers are replaced.
    if (records.length === 0) return;
    const best = new Map<string, z.infer<typeof upstreamState>>();
    for (const { upstreams } of records)
      for (const [id, state] of Object.entries(upstreams))
        if (better[state] >= better[best.get(id) ?? "no key"]) best.set(id, state);
    upstreams = best;
  }

  async function read(): Promise<void> {
    if (reading) return;
    reading = true;
    try {
      await readWorkers();
      const counts = await Promise.all(pools.map((pool) => queues.backlog(pool)));
      for (const [i, pool] of pools.entries()) {
        const free = workers.reduce((sum, worker) => sum + (worker.pools[pool]?.free ?? 0), 0);
        backlogs.set(pool, { waiting: counts[i] ?? 0, free, sinceThen: 0 });
      }
    } catch (error) {
      log.warn({ err: (error as Error).message }, "reading presence");
    } finally {
      reading = false;
    }
  }

  const count = (pool: Pool, calls: number) => {
    const backlog = backlogs.get(pool);
    if (backlog) backlog.sinceThen += calls;
  };

  return {
    async start() {
      await read();
      stop = clock.every(everyMs, () => void read());
    },
    stop: () => stop(),
    serving: (pool) => workers.filter((worker) => worker.pools[pool] !== undefined).length,
    backlog(pool) {
      const { waiting, free, sinceThen } = backlogs.get(pool) ?? { waiting: 0, free: 0, sinceThen: 0 };
      return waiting + Math.max(0, sinceThen - free);
    },
    added: (pool) => count(pool, 1),
    ended: (pool) => count(pool, -1),
    upstream: (id) => upstreams.get(id) ?? "no key",
    known: () => upstreams.size > 0,
  };
}
