import type { ByteBudget } from "#platform/byte-budget";
import { type Metrics, upstreamStateValues } from "#platform/observability/metrics";
import { observeBudgets } from "../shared/process-metrics.ts";
import type { AttemptObserver, Upstreams } from "./upstreams/index.ts";

/** Measures attempts at upstreams. The upstream and model labels come from the catalog, so they are bounded. */
export function createAttemptObserver(metrics: Metrics): AttemptObserver {
  const count = metrics.counter("inference_upstream_attempts_total");
  const observeDuration = metrics.histogram("inference_upstream_attempt_seconds");
  const observeFirst = metrics.histogram("inference_upstream_first_byte_seconds");
  return {
    ended({ upstream, model, outcome, seconds }) {
      count({ upstream, model, outcome });
      // Failures are quick or wait for a deadline, so they would distort the measured speed of the upstream.
      if (outcome === "succeeded") observeDuration({ upstream }, seconds);
    },
    firstEvent: (upstream, seconds) => observeFirst({ upstream }, seconds),
  };
}

/** Exports the state of the worker's upstreams and memory. */
export function observe(metrics: Metrics, upstreams: Upstreams, payload: ByteBudget): void {
  metrics.gauge("inference_upstream_state", () =>
    Object.entries(upstreams.states()).map(([upstream, state]) => [{ upstream }, upstreamStateValues[state]]),
  );
  for (const value of ["running", "waiting"] as const)
    metrics.gauge(`inference_upstream_${value}`, () =>
      upstreams.loads().map((load) => [{ upstream: load.upstream }, load[value]]),
    );
  observeBudgets(metrics, { payload });
}
