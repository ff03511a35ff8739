/**
 * Health of this worker process.
 *
 * `/livez` fails when jobs wait in a pool and the process has free slots but takes none. Being busy or idle is not a
 * failure, and neither is an unavailable store: a restart would not help, and all workers would restart at once. `/readyz`
 * tells whether the process takes jobs now; nothing is routed to a worker, so it is for operators and rollouts.
 */
import type { Pool, Queues } from "#jobs";
import type { Clock } from "#platform/clock";
import { oneAtATime } from "#platform/concurrency/one-at-a-time";
import type { Logger } from "#platform/logger";
import type { Health } from "#platform/observability/metrics-server";
import type { Probe } from "#platform/observability/probe";

const stuckMs = 30_000;
const checkMs = 5_000;
/** A longer time between two checks means that Redis was unavailable, or that this process was paused. */
const maxGapMs = 2 * checkMs;

interface WatchedPool {
  readonly pool: Pool;
  readonly load: () => { readonly free: number };
  /** Keyed by queue. */
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
  let checkedAt = clock.now();
  let checkingSince = checkedAt;
  /** The pools that were stuck at the last check. */
  let suspected: readonly Pool[] = [];
  /** Pools that were stuck at the last two checks: a job seen once may be about to be taken. */
  let stuck: readonly Pool[] = [];
  let isDraining = false;

  /** One stuck queue is enough. */
  async function isStuck({ load, lastTakenAt }: WatchedPool): Promise<boolean> {
    const checks = [...lastTakenAt()].map(async ([queue, takenAt]) => {
      const since = await queues.oldestIn(queue);
      const now = clock.now();
      const idleMs = now - Math.max(takenAt, checkingSince);
      return since !== undefined && now - since >= stuckMs && idleMs >= stuckMs && load().free > 0;
    });
    return (await Promise.all(checks)).includes(true);
  }

  const check = oneAtATime(log, "the queues could not be checked", async () => {
    const results = await Promise.all(pools.map(isStuck));
    const now = clock.now();
    const isGap = now - checkedAt > maxGapMs;
    checkedAt = now;
    if (isGap) checkingSince = now;
    const found = isGap ? [] : pools.map(({ pool }) => pool).filter((_, i) => results[i]);
    const before = stuck;
    stuck = found.filter((pool) => suspected.includes(pool));
    suspected = found;
    if (stuck.length > 0 && before.length === 0)
      log.error({ pools: stuck }, "jobs are waiting and none is taken; the worker reports that it is not live");
  });
  const stop = clock.every(checkMs, () => void check());

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
    /** The process stops taking jobs on purpose. */
    drain(): void {
      isDraining = true;
    },
    stop,
  };
}

export type WorkerHealth = ReturnType<typeof createWorkerHealth>;
