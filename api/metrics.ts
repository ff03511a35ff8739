import { openStatuses } from "#batches";
import type { Catalog } from "#catalog";
import { type ClusterCheck, type ClusterCounts, type ClusterStats, maxStatsAgeMs } from "#cluster-stats";
import { isErrorCode } from "#errors";
import { type Pool, pools, type Queues, type ReplyReader, type WorkerRegistry } from "#jobs";
import type { Clock } from "#platform/clock";
import { type Metrics, upstreamStateValues } from "#platform/observability/metrics";
import type { CacheUse, ResponseCache } from "#response-cache";
import type { TrafficCounter } from "#traffic";
import { modelLabel } from "../shared/process-metrics.ts";
import type { EndedCall, OpenCalls } from "./open-calls/index.ts";
import type { PaymentOutcome } from "./pay-per-call.ts";

/** Counts calls as they end. Label values are the routes' endpoints, the catalog's models and our error codes. */
export function createCallObserver(
  metrics: Metrics,
  catalog: Catalog,
  traffic: Pick<TrafficCounter, "refused">,
): (call: EndedCall) => void {
  const count = metrics.counter("inference_calls_total");
  const observeDuration = metrics.histogram("inference_call_duration_seconds");
  const observeFirstByte = metrics.histogram("inference_time_to_first_byte_seconds");
  const observeOverhead = metrics.histogram("inference_overhead_seconds");
  return ({ endpoint, admitted, status, code = "none" }) => {
    const model = modelLabel(catalog, admitted?.model);
    const known = code === "none" || isErrorCode(code) ? code : "other";
    count({ endpoint, model, status: String(status), code: known });
    if (!admitted) {
      if (status >= 400 && status !== 499) traffic.refused();
      return;
    }
    observeDuration({ endpoint, model }, admitted.totalMs / 1_000);
    if (admitted.firstEventMs !== undefined) observeFirstByte({ model }, admitted.firstEventMs / 1_000);
    const { totalMs, providerMs } = admitted;
    // The clocks of two machines may run at different speeds, so the difference can be negative.
    if (providerMs !== undefined && status !== 499)
      observeOverhead({ endpoint }, Math.max(0, totalMs - providerMs) / 1_000);
  };
}

export function createPaymentObserver(metrics: Metrics): (outcome: PaymentOutcome) => void {
  const count = metrics.counter("inference_x402_payments_total");
  return (outcome) => count({ outcome });
}

/** Counts calls that ask for the response cache. */
export function createCacheObserver(
  metrics: Metrics,
  cache: Pick<ResponseCache, "isConfigured" | "isAvailable">,
): (use: CacheUse) => void {
  metrics.gauge("inference_cache_available", () =>
    cache.isConfigured ? [[{}, cache.isAvailable() ? 1 : 0]] : undefined,
  );
  const count = metrics.counter("inference_cache_calls_total");
  const countSaved = metrics.counter("inference_cache_saved_nanousd_total");
  return ({ outcome, coalesced, savedNanoUsd = 0n }) => {
    count({ outcome: coalesced ? "coalesced" : outcome });
    if (savedNanoUsd > 0n) countSaved({}, Number(savedNanoUsd));
  };
}

/** Metrics of this API instance and, through Redis, of all workers and queues. */
export function observe(deps: {
  metrics: Metrics;
  registry: WorkerRegistry;
  queues: Queues;
  openCalls: OpenCalls;
  reader: Pick<ReplyReader, "caughtUp">;
  clusterStats: ClusterStats;
  catalog: Catalog;
  clock: Clock;
}): void {
  const { metrics, registry, queues, openCalls, reader, clusterStats, catalog, clock } = deps;
  metrics.gauge("inference_catalog_differs", () => [[{}, registry.catalog().differs ? 1 : 0]]);
  metrics.gauge("inference_open_calls", () => [[{}, openCalls.count()]]);
  metrics.gauge("inference_endpoint_open_calls", () =>
    [...Map.groupBy(openCalls.values(), ({ payload }) => payload.endpoint)].map(([endpoint, calls]) => [
      { endpoint },
      calls.length,
    ]),
  );
  metrics.gauge("inference_reply_round_trip_seconds", async () => {
    const startedAt = performance.now();
    await reader.caughtUp();
    return [[{}, (performance.now() - startedAt) / 1_000]];
  });
  observeClusterStats({ metrics, clusterStats, clock });
  metrics.gauge("inference_upstream_state", () =>
    [...catalog.upstreams.keys()].map((upstream) => [{ upstream }, upstreamStateValues[registry.upstream(upstream)]]),
  );
  for (const value of ["workers", "running", "free", "waiting"] as const)
    metrics.gauge(`inference_pool_${value}`, () => registry.loads()?.map((load) => [{ pool: load.pool }, load[value]]));
  metrics.gauge("inference_jobs_waiting", () =>
    registry.loads()?.map(({ pool, jobsWaiting }) => [{ pool }, jobsWaiting]),
  );
  const oldestOf = (of: "calls" | "detached") => () =>
    Promise.all(
      pools.map(async (pool) => {
        const since = await queues.oldestWaiting(pool, of);
        return [{ pool }, since === undefined ? 0 : Math.max(0, clock.now() - since) / 1_000] as const;
      }),
    );
  metrics.gauge("inference_pool_oldest_waiting_seconds", oldestOf("calls"));
  metrics.gauge("inference_jobs_oldest_waiting_seconds", oldestOf("detached"));
}

/** Lines of batches that this instance has admitted. */
export function observeLines(metrics: Metrics, inFlight: () => ReadonlyMap<Pool, number>): void {
  metrics.gauge("inference_batch_lines_in_flight", () => [...inFlight()].map(([pool, lines]) => [{ pool }, lines]));
}

/** Metrics of stored data: every API instance exports the counts of a maintenance worker. */
function observeClusterStats(deps: { metrics: Metrics; clusterStats: ClusterStats; clock: Clock }): void {
  const { metrics, clusterStats, clock } = deps;
  const ageSeconds = (since: number) => Math.max(0, clock.now() - since) / 1_000;
  const ageOf = (since: number | undefined) => (since === undefined ? 0 : ageSeconds(since));

  async function counts(): Promise<ClusterCounts | undefined> {
    const { counts: found } = await clusterStats.read();
    return found && clock.now() - found.at <= maxStatsAgeMs ? found : undefined;
  }

  type Gauge = Parameters<Metrics["gauge"]>[0];
  type Plain = Extract<
    Gauge,
    `inference_${"hold" | "lease" | "webhook_oldest" | "undecided" | "ledger" | "file" | "gathered" | "batch_stalled"}${string}`
  >;
  const plain = (name: Plain, read: () => Promise<number | undefined>) =>
    metrics.gauge(name, async () => {
      const value = await read();
      return value === undefined ? undefined : [[{}, value]];
    });
  const counted = (name: Plain, of: (found: ClusterCounts) => number) =>
    plain(name, async () => {
      const found = await counts();
      return found && of(found);
    });

  counted("inference_holds_open", ({ holds }) => holds.open);
  counted("inference_hold_oldest_seconds", ({ holds }) => ageOf(holds.oldestAt));
  counted("inference_leases_open", ({ leases }) => leases.open);
  counted("inference_lease_oldest_seconds", ({ leases }) => ageOf(leases.oldestAt));
  counted("inference_undecided_calls", ({ undecided }) => undecided);
  counted("inference_file_expiry_lag_seconds", ({ dueSince }) => ageOf(dueSince));
  plain("inference_webhook_oldest_pending_seconds", async () => {
    const { webhooks } = await clusterStats.read();
    return webhooks && clock.now() - webhooks.at <= maxStatsAgeMs ? ageOf(webhooks.dueSince) : undefined;
  });
  plain("inference_gathered_age_seconds", async () => {
    const { counts: found } = await clusterStats.read();
    return found && ageSeconds(found.at);
  });
  const byState = (states: Readonly<Record<string, number>> | undefined) =>
    states && Object.entries(states).map(([state, count]) => [{ state }, count] as const);
  plain("inference_batch_stalled_seconds", async () => {
    const batches = (await counts())?.batches;
    return batches && ageOf(batches.stalledSince);
  });
  metrics.gauge("inference_batch_oldest_seconds", async () => {
    const oldestAt = (await counts())?.batches?.oldestAt;
    return oldestAt && openStatuses.map((status) => [{ status }, ageOf(oldestAt[status])] as const);
  });
  metrics.gauge("inference_uploads", async () => byState((await counts())?.uploads));
  metrics.gauge("inference_buyback_batches", async () => byState((await counts())?.buybacks));

  /** The larger value of the last complete check and the current one. */
  const found = (of: (check: NonNullable<ClusterCheck["complete" | "current"]>) => number) => async () => {
    const { check } = await clusterStats.read();
    const values = [check?.complete, check?.current].flatMap((each) => (each ? [of(each)] : []));
    return values.length > 0 ? Math.max(...values) : undefined;
  };
  plain(
    "inference_ledger_difference_usd",
    found(({ differenceNanoUsd }) => Number(differenceNanoUsd) / 1e9),
  );
  plain(
    "inference_ledger_faults",
    found(({ faults }) => faults),
  );
  plain("inference_ledger_check_age_seconds", async () => {
    const { check } = await clusterStats.read();
    return check?.complete && ageSeconds(check.complete.at);
  });
}
