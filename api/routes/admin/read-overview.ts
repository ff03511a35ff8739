import type { Catalog } from "#catalog";
import { type ClusterStats, maxStatsAgeMs } from "#cluster-stats";
import type { Pool, Queues, WorkerRegistry } from "#jobs";
import type { Payments } from "#payments";
import { sharedRead } from "#platform/concurrency/shared-read";
import type { Probe } from "#platform/observability/probe";
import { percentileMs } from "#platform/time-buckets";
import type { Uses } from "#platform/uses";
import { type AttemptCount, attemptsAt, sumOf, type Traffic } from "#traffic";

export interface OverviewDeps extends Uses<"clock"> {
  readonly traffic: Pick<Traffic, "read" | "readUpstreams">;
  readonly registry: WorkerRegistry;
  readonly queues: Pick<Queues, "oldestWaiting">;
  readonly clusterStats: ClusterStats;
  readonly catalog: Catalog;
  readonly probes: Readonly<Record<"mongodb" | "redis" | "s3", Probe>>;
  readonly payments: Pick<Payments, "unused">;
}

/** The stores are read once in this time, however many operators ask. */
const validMs = 1_000;
const upstreamsValidMs = 5_000;
/** Longer, because the sum covers all payment accounts. */
const owedValidMs = 60_000;

/** Resolves to null if a store does not answer. */
const orNothing = <T>(reading: Promise<T>): Promise<T | null> => reading.catch(() => null);

const shownAttempts = ({ firstToken, total, ...counts }: AttemptCount) => ({
  ...counts,
  firstTokenP50Ms: percentileMs(firstToken, 50),
  firstTokenP95Ms: percentileMs(firstToken, 95),
  totalP50Ms: percentileMs(total, 50),
  totalP95Ms: percentileMs(total, 95),
});

/** Reads the attempts at all upstreams. The result has those of one. */
export const createUpstreamTraffic = ({ traffic, clock }: Pick<OverviewDeps, "traffic" | "clock">) =>
  sharedRead(clock, upstreamsValidMs, () =>
    orNothing(
      Promise.all([traffic.readUpstreams("minute"), traffic.readUpstreams("hour")]).then(
        ([minutes, hours]) =>
          (upstream: string) => ({
            last5Minutes: shownAttempts(attemptsAt(upstream, minutes.slice(-5))),
            lastHour: shownAttempts(attemptsAt(upstream, minutes)),
            lastDay: shownAttempts(attemptsAt(upstream, hours)),
          }),
      ),
    ),
  );

/** Reads the state of the whole service, cheaply enough to be asked every second. */
export function createOverview(deps: OverviewDeps) {
  const { traffic, registry, queues, clusterStats, catalog, probes, payments, clock } = deps;

  async function readTraffic() {
    const [minutes, hours] = await Promise.all([traffic.read("minute"), traffic.read("hour")]);
    const shown = <Count extends { readonly nanoUsd: bigint }>(each: Count) => ({
      ...each,
      chargedNanoUsd: each.nanoUsd,
    });
    return {
      // The current minute and the four before it.
      last5Minutes: shown(sumOf(minutes.slice(-5))),
      lastHour: shown(sumOf(minutes)),
      lastDay: shown(sumOf(hours)),
      minutes: minutes.map(shown),
      hours: hours.map(shown),
    };
  }

  async function readPools() {
    const loads = registry.loads();
    if (!loads) return null;
    const secondsOf = async (pool: Pool, of: "calls" | "detached") => {
      const since = await queues.oldestWaiting(pool, of);
      return since === undefined ? 0 : Math.max(0, clock.now() - since) / 1_000;
    };
    return Promise.all(
      loads.map(async (load) => {
        const [oldestWaitSeconds, oldestJobWaitSeconds] = await Promise.all([
          secondsOf(load.pool, "calls"),
          secondsOf(load.pool, "detached"),
        ]);
        return { ...load, oldestWaitSeconds, oldestJobWaitSeconds };
      }),
    );
  }

  async function readStores() {
    const names = ["mongodb", "redis", "s3"] as const;
    const pings = await Promise.all(names.map((name) => probes[name]()));
    return names.map((name, n) => {
      const seconds = pings[n];
      return { name, ok: seconds !== undefined, pingMs: seconds && Math.round(seconds * 1e6) / 1_000 };
    });
  }

  async function readHolds() {
    const { counts: held, check } = await clusterStats.read();
    const shown = ({ open, oldestAt }: { open: number; oldestAt?: number | undefined }) => ({
      open,
      oldestSeconds: oldestAt === undefined ? 0 : Math.max(0, Math.floor((clock.now() - oldestAt) / 1_000)),
    });
    const isFresh = held !== undefined && clock.now() - held.at <= maxStatsAgeMs;
    return {
      money: isFresh ? { ...held, holds: shown(held.holds), leases: shown(held.leases) } : null,
      ledger: check?.complete && {
        faults: check.complete.faults,
        differenceNanoUsd: BigInt(check.complete.differenceNanoUsd),
        checkedAt: check.complete.at,
      },
    };
  }

  const readOwed = sharedRead(clock, owedValidMs, async () => {
    const { nanoUsd, payments: count } = await payments.unused.total({ expiredOnly: false });
    return { owedNanoUsd: nanoUsd, payments: count };
  });

  return sharedRead(clock, validMs, async () => {
    const [calls, loads, stores, held, owed] = await Promise.all([
      orNothing(readTraffic()),
      orNothing(readPools()),
      readStores(),
      orNothing(readHolds()),
      orNothing(readOwed()),
    ]);
    return {
      at: clock.now(),
      traffic: calls,
      pools: loads,
      workers: registry.workers()?.length,
      catalogDiffers: registry.catalog().differs,
      upstreams: [...catalog.upstreams.keys()].map((id) => ({
        id,
        state: registry.upstream(id),
        lastFailure: registry.details(id).lastFailure ?? null,
      })),
      stores,
      money: held?.money,
      ledger: held?.ledger,
      owed,
    };
  });
}
