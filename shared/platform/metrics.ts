import { collectDefaultMetrics, Gauge, Registry } from "@prometheus-io/client";
import serviceManifest from "../../package.json" with { type: "json" };
import { type Clock, resultWithin } from "./clock.ts";

interface Definition {
  /** The processes that have it. */
  readonly of: readonly ("api" | "worker")[];
  readonly labels: readonly string[];
  readonly help: string;
}

const both = ["api", "worker"] as const;

/**
 * Every metric of the service; the table in docs/operations/metrics.md is made from this list. The values of a label come from
 * a fixed list or from the catalog, never from a caller.
 */
export const metricList = {
  inference_build_info: { of: both, labels: ["process", "version", "node"], help: "1, with the version that runs" },
  inference_catalog_info: { of: both, labels: ["hash"], help: "1, with the hash of this process's catalog" },
  inference_catalog_differs: {
    of: ["api"],
    labels: [],
    help: "1 while a worker has another catalog than this API instance, else 0",
  },
  inference_open_calls: { of: ["api"], labels: [], help: "Paid calls that this instance has admitted and not ended" },
  inference_pool_workers: { of: ["api"], labels: ["pool"], help: "Worker processes that serve the pool" },
  inference_pool_running: { of: ["api"], labels: ["pool"], help: "Calls that run in the workers of the pool" },
  inference_pool_free: { of: ["api"], labels: ["pool"], help: "Calls that its workers could run in addition" },
  inference_pool_waiting: { of: ["api"], labels: ["pool"], help: "Calls that wait in the queue of the pool" },
  inference_pool_oldest_waiting_seconds: {
    of: ["api"],
    labels: ["pool"],
    help: "Time for which the oldest job in the queue has waited; 0 if none waits",
  },
  inference_upstream_state: {
    of: both,
    labels: ["upstream"],
    help: "2 ready, 1 circuit breaker open, 0 no key: in this worker; for the API the best state among the workers",
  },
  inference_store_ping_seconds: {
    of: both,
    labels: ["store"],
    help: "Time in which `mongodb`, `redis` or (API only) `s3` answered a ping; absent if it did not within a second",
  },
} as const satisfies Record<`inference_${string}`, Definition>;

export type MetricName = keyof typeof metricList;
type Labels<Name extends MetricName> = Readonly<Record<(typeof metricList)[Name]["labels"][number], string>>;
/** One value for each combination of labels; undefined: the metric is absent. */
type Samples<Name extends MetricName> = readonly (readonly [labels: Labels<Name>, value: number])[] | undefined;

const gatherMs = 2_000;

export type Metrics = ReturnType<typeof createMetrics>;

/** The metrics of one process. Values are gathered when they are read. */
export function createMetrics(process: "api" | "worker", clock: Clock) {
  const registry = new Registry();
  let reading: Promise<string> | undefined;

  /** A gauge whose value is read at each scrape. It is absent while `read` fails or takes too long. */
  function gauge<Name extends MetricName>(name: Name, read: () => Samples<Name> | Promise<Samples<Name>>): void {
    const { help, labels } = metricList[name];
    const values: Gauge<string> = new Gauge({
      name,
      help,
      labelNames: [...labels],
      registers: [registry],
      async collect() {
        const samples = await resultWithin(clock, gatherMs, read);
        values.reset();
        // Without labels a reset sets 0.
        if (labels.length === 0) values.remove();
        for (const [of, value] of samples ?? []) values.set(of, value);
      },
    });
  }

  const version = { process, version: serviceManifest.version, node: globalThis.process.versions.node };
  gauge("inference_build_info", () => [[version, 1]]);

  return {
    process,
    gauge,
    /**
     * Adds what Node knows of itself, under the names that dashboards for Node expect (`process_...`, `nodejs_...`). Once in a
     * process: it measures for as long as the process lives.
     */
    addRuntime: (): void => collectDefaultMetrics({ register: registry, eventLoopUtilizationTimeout: 1_000 }),
    /** In Prometheus' text format. Scrapes that come together share one reading. */
    text(): Promise<string> {
      reading ??= registry.metrics().finally(() => {
        reading = undefined;
      });
      return reading;
    },
    contentType: registry.contentType,
  };
}
