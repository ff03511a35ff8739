/**
 * Whether this process works, for whoever restarts it.
 *
 * `/livez` fails when jobs wait in a pool, the process has free slots and takes none. Being busy or idle is no fault of it, and
 * neither is a store that is unavailable: a restart would not help, and all workers would restart at once. `/readyz` says
 * whether it takes jobs now; nothing is routed to a worker, so it is for operators and rollouts.
 */
import type { Pool, Queues } from "#jobs";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { Health } from "#platform/metrics-server";
import { oneAtATime } from "#platform/one-at-a-time";
import type { Probe } from "#platform/probe";

const stuckMs = 30_000;
const lookMs = 5_000;
/** A longer time between two looks means that Redis was unavailable, or that this process was paused. */
const maxGapMs = 2 * lookMs;

interface WatchedPool {
  readonly pool: Pool;
  readonly load: () => { readonly free: number };
  /** By queue. */
  readonly lastTakenAt: () => ReadonlyMap<string, number>;
}

export function createWorkerHealth(deps: {
  pools: readonly WatchedPool[];
  queues: Pick<Queues, "oldestIn">;
  probes: Readonly<Record<"mongodb" | "redis", Probe>>;
  clock: Clock;
  log: Logger;
}) {
  const { pools, queues, probes, clock, log } = deps;
  let lookedAt = clock.now();
  let lookingSince = lookedAt;
  /** The pools that were stuck at the last look. */
  let suspected: readonly Pool[] = [];
  /** Those that also were at the look before: a job may be about to be taken when it is seen. */
  let stuck: readonly Pool[] = [];
  let isDraining = false;

  /** One of its queues is enough. */
  async function isStuck({ load, lastTakenAt }: WatchedPool): Promise<boolean> {
    const looks = [...lastTakenAt()].map(async ([queue, takenAt]) => {
      const since = await queues.oldestIn(queue);
      const now = clock.now();
      const idleMs = now - Math.max(takenAt, lookingSince);
      return since !== undefined && now - since >= stuckMs && idleMs >= stuckMs && load().free > 0;
    });
    return (await Promise.all(looks)).includes(true);
  }

  const look = oneAtATime(log, "looking at the queues", async () => {
    const results = await Promise.all(pools.map(isStuck));
    const now = clock.now();
    const isGap = now - lookedAt > maxGapMs;
    lookedAt = now;
    if (isGap) lookingSince = now;
    const found = isGap ? [] : pools.map(({ pool }) => pool).filter((_, i) => results[i]);
    const before = stuck;
    stuck = found.filter((pool) => suspected.includes(pool));
    suspected = found;
    if (stuck.length > 0 && before.length === 0) log.error({ pools: stuck }, "jobs wait and none is taken: not live");
  });
  const stop = clock.every(lookMs, () => void look());

  return {
    live: (): Health => {
      const ok = isDraining || stuck.length === 0;
      return { ok, body: { status: ok ? "live" : "not live", stuck } };
    },
    async ready(): Promise<Health> {
      const [mongodb, redis] = (await Promise.all([probes.mongodb(), probes.redis()])).map((s) => s !== undefined);
      const consuming = Object.fromEntries(pools.map(({ pool }) => [pool, !isDraining && !stuck.includes(pool)]));
      const ok = Boolean(mongodb && redis) && Object.values(consuming).every(Boolean);
      return { ok, body: { status: ok ? "ready" : "not ready", mongodb, redis, consuming } };
    },
    /** It takes no more jobs, on purpose. */
    drain(): void {
      isDraining = true;
    },
    stop,
  };
}

export type WorkerHealth = ReturnType<typeof createWorkerHealth>;
