import { z } from "zod";
import type { Catalog } from "#catalog";
import type { Gathered } from "#gathered";
import { pools, type Queues, type WorkerRegistry } from "#jobs";
import { formatUsd } from "#money";
import type { Payments } from "#payments";
import type { Clock } from "#platform/clock";
import type { Probe } from "#platform/probe";
import { sumOf, type Traffic, type TrafficCount, type TrafficPoint } from "#traffic";
import { parse } from "../../http/input.ts";
import type { Handler } from "../../http/json-routes.ts";

const noQuery = z.strictObject({});
/** However many operators look, this much is asked of the stores. */
const validMs = 1_000;
/** A sum over all payment accounts. */
const owedValidMs = 60_000;
/** Counts of a maintenance worker that are older say nothing of now. */
const gatheredValidMs = 120_000;

export interface OverviewDeps {
  readonly traffic: Pick<Traffic, "read">;
  readonly registry: WorkerRegistry;
  readonly queues: Pick<Queues, "oldestWaiting">;
  readonly gathered: Gathered;
  readonly catalog: Catalog;
  readonly probes: Readonly<Record<"mongodb" | "redis" | "s3", Probe>>;
  readonly payments: Pick<Payments, "unused">;
  readonly clock: Clock;
}

/** One reading for all that ask within this time. One that failed is forgotten at once. */
function shared<T>(clock: Clock, ms: number, read: () => Promise<T>): () => Promise<T> {
  let last: { readonly at: number; readonly value: Promise<T> } | undefined;
  return () => {
    if (last && clock.now() - last.at < ms) return last.value;
    const value = read();
    last = { at: clock.now(), value };
    value.catch(() => {
      last = undefined;
    });
    return value;
  };
}

const seconds = (ms: number) => Math.floor(ms / 1_000);
const milliseconds = (ms: number) => Math.round(ms * 1_000) / 1_000;
/** What a store that does not answer would have said. */
const orNull = <T>(reading: Promise<T>): Promise<T | null> => reading.catch(() => null);

const showCount = ({ calls, failed, refused, nanoUsd }: TrafficCount) => ({
  calls,
  failed,
  refused,
  charged_usd: formatUsd(nanoUsd),
});
const showPoint = (point: TrafficPoint) => ({ at: seconds(point.at), ...showCount(point) });

/** `GET /overview`: the state of the whole service, cheap enough to be asked every second. What cannot be read is null. */
export function overviewHandlers(deps: OverviewDeps) {
  const { traffic, registry, queues, gathered, catalog, probes, payments, clock } = deps;

  async function readTraffic() {
    const [minutes, hours] = await Promise.all([traffic.read("minute"), traffic.read("hour")]);
    return {
      // The minute that runs, and those before it.
      last_5_minutes: showCount(sumOf(minutes.slice(-5))),
      last_hour: showCount(sumOf(minutes)),
      last_day: showCount(sumOf(hours)),
      minutes: minutes.map(showPoint),
      hours: hours.map(showPoint),
    };
  }

  async function readPools() {
    const loads = registry.loads();
    if (!loads) return null;
    const oldest = await Promise.all(pools.map((pool) => queues.oldestWaiting(pool)));
    return loads.map(({ pool, workers, running, free, waiting }, n) => {
      const since = oldest[n];
      return {
        pool,
        workers,
        running,
        free,
        waiting,
        oldest_wait_seconds: since === undefined ? 0 : Math.max(0, clock.now() - since) / 1_000,
      };
    });
  }

  async function readStores() {
    const names = ["mongodb", "redis", "s3"] as const;
    const pings = await Promise.all(names.map((name) => probes[name]()));
    return names.map((name, n) => {
      const reply = pings[n];
      return { name, ok: reply !== undefined, ping_ms: reply === undefined ? null : milliseconds(reply * 1_000) };
    });
  }

  async function readHolds() {
    const { counts, check } = await gathered.read();
    const age = (at: number | undefined) => (at === undefined ? 0 : Math.max(0, seconds(clock.now() - at)));
    const shown = ({ open, oldestAt }: { open: number; oldestAt?: number | undefined }) => ({
      open,
      oldest_seconds: age(oldestAt),
    });
    const isFresh = counts !== undefined && clock.now() - counts.at <= gatheredValidMs;
    return {
      money: isFresh ? { holds: shown(counts.holds), leases: shown(counts.leases), undecided: counts.undecided } : null,
      ledger: check?.complete
        ? {
            faults: check.complete.faults,
            difference_usd: formatUsd(BigInt(check.complete.differenceNanoUsd)),
            checked_at: seconds(check.complete.at),
          }
        : null,
    };
  }

  const readOwed = shared(clock, owedValidMs, async () => {
    const { nanoUsd, payments: count } = await payments.unused.total({ expiredOnly: false });
    return { owed_usd: formatUsd(nanoUsd), payments: count };
  });

  const overview = shared(clock, validMs, async () => {
    const [calls, loads, stores, held, owed] = await Promise.all([
      orNull(readTraffic()),
      orNull(readPools()),
      readStores(),
      orNull(readHolds()),
      orNull(readOwed()),
    ]);
    return {
      object: "overview",
      at: seconds(clock.now()),
      traffic: calls,
      pools: loads,
      workers: registry.workers()?.length ?? null,
      catalog_differs: registry.catalog().differs,
      upstreams: [...catalog.upstreams.keys()].map((id) => ({ id, state: registry.upstream(id) })),
      stores,
      money: held?.money ?? null,
      ledger: held?.ledger ?? null,
      owed,
    };
  });

  return {
    get: async (req) => {
      parse(noQuery, req.query);
      return overview();
    },
  } satisfies Record<string, Handler>;
}
