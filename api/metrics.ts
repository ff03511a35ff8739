import type { Catalog } from "#catalog";
import { pools, type Queues, type WorkerRegistry } from "#jobs";
import type { Clock } from "#platform/clock";
import type { Metrics } from "#platform/metrics";
import type { OpenCalls } from "./open-calls/index.ts";

const upstreamValues = { "no key": 0, open: 1, ready: 2 } as const;

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
    [...catalog.upstreams.keys()].map((upstream) => [{ upstream }, upstreamValues[registry.upstream(upstream)]]),
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
