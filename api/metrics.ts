import type { Catalog } from "#catalog";
import { errorKinds } from "#errors";
import type { Gathered } from "#gathered";
import { pools, type Queues, type ReplyReader, type WorkerRegistry } from "#jobs";
import type { Clock } from "#platform/clock";
import { type Metrics, upstreamStates } from "#platform/metrics";
import type { TrafficCounter } from "#traffic";
import { modelLabel } from "../shared/process-metrics.ts";
import { observeGathered } from "./gathered-metrics.ts";
import type { EndedCall, OpenCalls } from "./open-calls/index.ts";
import type { PaymentOutcome } from "./pay-per-call.ts";

/** Counts calls as they end. Its labels are the routes' endpoints, the catalog's models and our error codes. */
export function createCallObserver(
  metrics: Metrics,
  catalog: Catalog,
  traffic: Pick<TrafficCounter, "answered">,
): (call: EndedCall) => void {
  const count = metrics.counter("inference_calls_total");
  const observeDuration = metrics.histogram("inference_call_duration_seconds");
  const observeFirstByte = metrics.histogram("inference_time_to_first_byte_seconds");
  const observeOverhead = metrics.histogram("inference_overhead_seconds");
  return ({ endpoint, admitted, status, code = "none" }) => {
    const model = modelLabel(catalog, admitted?.model);
    const known = code === "none" || Object.hasOwn(errorKinds, code) ? code : "other";
    count({ endpoint, model, status: String(status), code: known });
    traffic.answered(status);
    if (!admitted) return;
    observeDuration({ endpoint, model }, admitted.totalMs / 1_000);
    if (admitted.firstEventMs !== undefined) observeFirstByte({ model }, admitted.firstEventMs / 1_000);
    const { totalMs, providerMs } = admitted;
    // The clocks of two machines may differ in how fast they go.
    if (providerMs !== undefined && status !== 499)
      observeOverhead({ endpoint }, Math.max(0, totalMs - providerMs) / 1_000);
  };
}

/** Counts what became of payments. */
export function createPaymentObserver(metrics: Metrics): (outcome: PaymentOutcome) => void {
  const count = metrics.counter("inference_x402_payments_total");
  return (outcome) => count({ outcome });
}

/** What an API instance knows of itself and, through Redis, of all workers and queues. */
export function observe(deps: {
  metrics: Metrics;
  registry: WorkerRegistry;
  queues: Queues;
  openCalls: OpenCalls;
  reader: Pick<ReplyReader, "caughtUp">;
  gathered: Gathered;
  catalog: Catalog;
  clock: Clock;
}): void {
  const { metrics, registry, queues, openCalls, reader, gathered, catalog, clock } = deps;
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
  observeGathered({ metrics, gathered, clock });
  metrics.gauge("inference_upstream_state", () =>
    [...catalog.upstreams.keys()].map((upstream) => [{ upstream }, upstreamStates[registry.upstream(upstream)]]),
  );
  for (const value of ["workers", "running", "free", "waiting"] as const)
    metrics.gauge(`inference_pool_${value}`, () => registry.loads()?.map((load) => [{ pool: load.pool }, load[value]]));
  metrics.gauge("inference_pool_oldest_waiting_seconds", () =>
    Promise.all(
      pools.map(async (pool) => {
        const since = await queues.oldestWaiting(pool);
        return [{ pool }, since === undefined ? 0 : Math.max(0, clock.now() - since) / 1_000] as const;
      }),
    ),
  );
}
