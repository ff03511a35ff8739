import { z } from "zod";
import { oneAtATime } from "#platform/concurrency/one-at-a-time";
import type { Uses } from "#platform/uses";
import { callPools, type Pool, pools } from "./catalog.ts";
import type { Queues } from "./queues.ts";
import { mergeSpeeds, type Speed, speedKey, speeds } from "./speeds.ts";

/** From the worst to the best. */
export const upstreamStates = ["no key", "key refused", "open", "ready"] as const;
// A worker of a newer version may have other states, none of which counts as ready.
const upstreamState = z.enum(upstreamStates).catch("open");
export type UpstreamState = z.infer<typeof upstreamState>;
const upstreamDetails = z.object({
  baseUrl: z.string().optional(),
  /** Unix milliseconds, and the text of the failure. */
  lastFailure: z.object({ at: z.number(), message: z.string() }).optional(),
});
export type UpstreamDetails = z.infer<typeof upstreamDetails>;
// The name of a pool is any string, because a worker of a newer version may serve pools that are unknown here.
const workerRecord = z.object({
  /** The version of the service. Older workers lack this field and the next. */
  version: z.string().optional(),
  /** Unix milliseconds. */
  startedAt: z.number().optional(),
  // `lines`: those running calls that are lines of batches. Older workers lack this field and the next.
  pools: z.record(z.string(), z.object({ free: z.int(), running: z.int(), lines: z.int().optional() })),
  /** The part of the last second for which the event loop was active. */
  utilization: z.number().optional(),
  upstreams: z.record(z.string(), upstreamState),
  /** Has the upstreams with a key. Older workers lack this field. */
  details: z.record(z.string(), upstreamDetails).optional().catch(undefined),
  /** The hash of the worker's catalog. Older workers lack this field. */
  catalog: z.string().default("unknown"),
  // A worker of another version may measure something else.
  speeds: speeds.optional().catch(undefined),
});

/** Written by every worker process about itself, once a second. */
export type WorkerRecord = z.infer<typeof workerRecord>;
export type KnownWorker = WorkerRecord & { readonly id: string };

// All records share one hash tag, so that they can be read together.
const indexKey = "{worker}:index";
const recordKey = (worker: string) => `{worker}:${worker}`;
const recordSeconds = 5;
const intervalMs = 1_000;
/** Workers without a record for this long are removed from the index. */
const forgetMs = 60_000;

/** Writes this worker's record every second. Stopping removes the record immediately. */
export function registerWorker(deps: Uses<"redis" | "clock" | "log"> & { worker: string; record: () => WorkerRecord }) {
  const { worker, redis, clock, log } = deps;
  const write = oneAtATime(log, "the worker record could not be written", () =>
    Promise.all([
      redis.set(recordKey(worker), JSON.stringify(deps.record()), "EX", recordSeconds),
      redis.zadd(indexKey, clock.now(), worker),
    ]),
  );
  const stop = clock.every(intervalMs, () => void write());
  return {
    write,
    async stop() {
      stop();
      // If Redis is unavailable, the record expires.
      if (redis.status === "ready") await Promise.all([redis.del(recordKey(worker)), redis.zrem(indexKey, worker)]);
    },
  };
}

/** Reads the records of all live workers, and forgets those of dead ones. */
export async function readWorkers({ redis, clock }: Uses<"redis" | "clock">): Promise<KnownWorker[]> {
  const now = clock.now();
  const index = await redis.zrange(indexKey, "0", "-1", "WITHSCORES");
  const ids = index.filter((_, i) => i % 2 === 0);
  const values = ids.length > 0 ? await redis.mget(...ids.map(recordKey)) : [];
  const records: KnownWorker[] = [];
  const dead: string[] = [];
  for (const [i, id] of ids.entries()) {
    const parsed = workerRecord.safeParse(JSON.parse(values[i] ?? "null"));
    if (parsed.success) records.push({ ...parsed.data, id });
    else if (now - Number(index[2 * i + 1]) > forgetMs) dead.push(id);
  }
  if (dead.length > 0) await redis.zrem(indexKey, ...dead);
  return records;
}

const rankOf = (state: UpstreamState) => upstreamStates.indexOf(state);

/** The best state of each upstream among the workers. */
export function bestStates(workers: readonly WorkerRecord[]): Map<string, UpstreamState> {
  const best = new Map<string, UpstreamState>();
  for (const { upstreams } of workers)
    for (const [id, state] of Object.entries(upstreams))
      if (rankOf(state) >= rankOf(best.get(id) ?? "no key")) best.set(id, state);
  return best;
}

/** The latest failure of an upstream in any worker. */
export const lastFailureOf = (workers: readonly WorkerRecord[], id: string): UpstreamDetails["lastFailure"] =>
  workers.flatMap(({ details }) => details?.[id]?.lastFailure ?? []).toSorted((one, other) => other.at - one.at)[0];

/** The records of all workers and the backlogs of the pools, as this API instance last read them. */
export function createWorkerRegistry({
  redis,
  queues,
  catalog,
  clock,
  log,
}: Uses<"redis" | "clock" | "log"> & {
  queues: Pick<Queues, "backlog" | "detachedBacklog" | "announceShards">;
  /** The hash of this API instance's catalog. */
  catalog: string;
}) {
  let workers: readonly KnownWorker[] = [];
  let workersByCatalog: Readonly<Record<string, number>> = {};
  let readAt = Number.NEGATIVE_INFINITY;
  let upstreams: ReadonlyMap<string, UpstreamState> = new Map();
  let measured: ReadonlyMap<string, Speed> = new Map();
  const backlogs = new Map<Pool, { waiting: number; free: number; added: number; detached: number }>();
  let stop = () => {};

  function show(records: readonly KnownWorker[]): void {
    workers = records;
    compareCatalogs();
    measured = mergeSpeeds(records.map((record) => record.speeds));
    // If there are no workers, the last known upstreams remain, so that models stay listed while workers are replaced.
    if (records.length === 0) return;
    upstreams = bestStates(records);
  }

  const differs = (catalogs: typeof workersByCatalog) => Object.keys(catalogs).some((hash) => hash !== catalog);

  function compareCatalogs(): void {
    const counts = Object.entries(Object.groupBy(workers, ({ catalog }) => catalog));
    const next = Object.fromEntries(counts.map(([hash, of = []]) => [hash, of.length]));
    const [before, now] = [differs(workersByCatalog), differs(next)];
    workersByCatalog = next;
    if (now && !before)
      log.warn(
        { catalog, workers: next },
        "workers have a different catalog: they charge other prices than the API holds",
      );
    else if (before && !now) log.info({ catalog, workers: next }, "all workers have this catalog again");
  }

  const read = oneAtATime(log, "the worker registry could not be read", async () => {
    const [records] = await Promise.all([readWorkers({ redis, clock }), queues.announceShards()]);
    const [counts, detached] = await Promise.all([
      Promise.all(pools.map((pool) => queues.backlog(pool))),
      Promise.all(pools.map((pool) => queues.detachedBacklog(pool))),
    ]);
    // Workers and backlogs are updated together: without known free slots every call would count as backlog.
    show(records);
    for (const [i, pool] of pools.entries()) {
      const free = workers.reduce((sum, worker) => sum + (worker.pools[pool]?.free ?? 0), 0);
      backlogs.set(pool, { waiting: counts[i] ?? 0, free, added: 0, detached: detached[i] ?? 0 });
    }
    readAt = clock.now();
  });

  const countAdded = (pool: Pool, calls: number) => {
    const backlog = backlogs.get(pool);
    if (backlog) backlog.added += calls;
  };

  return {
    async start() {
      await read();
      stop = clock.every(intervalMs, () => void read());
    },
    stop: () => stop(),
    /** Counts the worker processes that serve the pool. */
    serving: (pool: Pool): number => workers.filter((worker) => worker.pools[pool] !== undefined).length,
    /** Counts waiting calls: those last read, plus those added here since for which no slot was free. */
    backlog(pool: Pool): number {
      const { waiting, free, added } = backlogs.get(pool) ?? { waiting: 0, free: 0, added: 0 };
      return waiting + Math.max(0, added - free);
    },
    /** Counts waiting jobs of detached calls: those last read, plus those added here since. */
    detachedBacklog: (pool: Pool): number => backlogs.get(pool)?.detached ?? 0,
    addedDetached(pool: Pool): void {
      const backlog = backlogs.get(pool);
      if (backlog) backlog.detached += 1;
    },
    /** Returns all live workers for an operator, or undefined if they were last read too long ago. */
    workers: () => (clock.now() - readAt > recordSeconds * 1_000 ? undefined : workers),
    /** Returns the workers of each pool for metrics, or undefined if they were last read too long ago. */
    loads() {
      if (clock.now() - readAt > recordSeconds * 1_000) return undefined;
      return pools.map((pool) => {
        const loads = workers.flatMap((worker) => worker.pools[pool] ?? []);
        const running = loads.reduce((sum, load) => sum + load.running, 0);
        const free = loads.reduce((sum, load) => sum + load.free, 0);
        const { waiting = 0, detached: jobsWaiting = 0 } = backlogs.get(pool) ?? {};
        return { pool, workers: loads.length, running, free, waiting, jobsWaiting };
      });
    },
    /**
     * How busy the processes are that serve the pool: the calls that they run, in any pool, without lines of batches, and the
     * mean part of the last second for which their event loops were active.
     */
    pressure(pool: Pool): { readonly calls: number; readonly utilization: number } {
      const serving = workers.filter((worker) => worker.pools[pool] !== undefined);
      const loads = serving.flatMap((worker) => callPools.flatMap((each) => worker.pools[each] ?? []));
      const calls = loads.reduce((sum, { running, lines = 0 }) => sum + running - lines, 0);
      const active = serving.reduce((sum, { utilization = 0 }) => sum + utilization, 0);
      return { calls, utilization: active / Math.max(1, serving.length) };
    },
    /** This instance's catalog, the number of workers by catalog, and whether any of them differs. */
    catalog: () => ({ hash: catalog, workers: workersByCatalog, differs: differs(workersByCatalog) }),
    added: (pool: Pool) => countAdded(pool, 1),
    /** Call it when an added call has ended, so that its slot is free again. */
    ended: (pool: Pool) => countAdded(pool, -1),
    upstream: (id: string): UpstreamState => upstreams.get(id) ?? "no key",
    /** Returns true if some worker has a key of the upstream that its provider accepts, whether or not it responds now. */
    hasKey(id: string): boolean {
      const known = upstreams.get(id);
      return known === "ready" || known === "open";
    },
    /** The addresses that workers call, and the latest failure in any of them. */
    details(id: string): UpstreamDetails & { readonly addresses: readonly string[] } {
      const all = workers.flatMap(({ details }) => details?.[id] ?? []);
      const lastFailure = lastFailureOf(workers, id);
      const addresses = [...new Set(all.flatMap(({ baseUrl }) => baseUrl ?? []))];
      return { addresses, ...(lastFailure && { lastFailure }) };
    },
    /** The speed over all workers, by the upstream's name for the model. Undefined if not measured recently. */
    speed: (id: string, model: string): Speed | undefined => measured.get(speedKey(id, model)),
    /** Returns true once any worker was seen. */
    known: () => upstreams.size > 0,
  };
}

export type WorkerRegistry = ReturnType<typeof createWorkerRegistry>;
