import type { AttemptOutcome } from "#money";
import type { ByteBudget } from "#platform/byte-budget";
import { type Metrics, upstreamStateValues } from "#platform/observability/metrics";
import type { TrafficCounter } from "#traffic";
import { observeBudgets } from "../shared/process-metrics.ts";
import type { AttemptObserver, Upstreams } from "./upstreams/index.ts";

/** The fault is the upstream's, or that of our key. An upstream refuses what is wrong with a request. */
const failures: readonly AttemptOutcome[] = ["failed", "busy", "timeout"];

/** Measures attempts at upstreams. The upstream and model labels come from the catalog, so they are bounded. */
export function createAttemptObserver(metrics: Metrics, traffic: TrafficCounter): AttemptObserver {
  const count = metrics.counter("inference_upstream_attempts_total");
  const observeDuration = metrics.histogram("inference_upstream_attempt_seconds");
  const observeFirst = metrics.histogram("inference_upstream_first_byte_seconds");
  return {
    ended({ upstream, model, isOwn }, outcome, ms) {
      count({ upstream, model, outcome });
      // Failures are quick or wait for a deadline, so they would distort the measured speed of the upstream.
      const hasSucceeded = outcome === "succeeded";
      if (hasSucceeded) observeDuration({ upstream }, ms / 1_000);
      if (!isOwn)
        traffic.attempted({ upstream, model }, hasSucceeded ? { ms } : { isFailed: failures.includes(outcome) });
    },
    firstEvent({ upstream, model, isOwn }, ms) {
      observeFirst({ upstream }, ms / 1_000);
      if (!isOwn) traffic.firstEvent({ upstream, model }, ms);
    },
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
