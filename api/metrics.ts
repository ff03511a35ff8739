import type { Catalog } from "#catalog";
import { errorKinds } from "#errors";
import { pools, type Queues, type WorkerRegistry } from "#jobs";
import type { Clock } from "#platform/clock";
import { type Metrics, upstreamStates } from "#platform/metrics";
import type { EndedCall, OpenCalls } from "./open-calls/index.ts";

/** Counts calls as they end. Its labels are the routes' endpoints, the catalog's models and our error codes. */
export function createCallObserver(metrics: Metrics): (call: EndedCall) => void {
  const count = metrics.counter("inference_calls_total");
  const observeDuration = metrics.histogram("inference_call_duration_seconds");
  const observeFirstByte = metrics.histogram("inference_time_to_first_byte_seconds");
  return ({ endpoint, admitted, status, code = "none" }) => {
    const model = admitted?.model ?? "other";
    const known = code === "none" || Object.hasOwn(errorKinds, code) ? code : "other";
    count({ endpoint, model, status: String(status), code: known });
    if (!admitted) return;
    observeDuration({ endpoint, model }, admitted.totalMs / 1_000);
    if (admitted.firstEventMs !== undefined) observeFirstByte({ model }, admitted.firstEventMs / 1_000);
  };
}

/** What an API instance knows of itself and, through Redis, of all workers and queues. */
export function observe(deps: {
  metrics: Metrics;
  registry: WorkerRegistry;
  queues: Queues;
  openCalls: OpenCalls;
  catalog: Catalog;
  clock: Clock;
}): void {
  const { metrics, registry, queues, openCalls, catalog, clock } = deps;
  metrics.gauge("inference_catalog_differs", () => [[{}, registry.catalog().differs ? 1 : 0]]);
  metrics.gauge("inference_open_calls", () => [[{}, openCalls.count()]]);
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
