import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "@prometheus-io/client";
import serviceManifest from "../../package.json" with { type: "json" };
import { type Clock, resultWithin } from "./clock.ts";

interface Definition {
  readonly type: "gauge" | "counter" | "histogram";
  /** The processes that have it. */
  readonly of: readonly ("api" | "worker")[];
  readonly labels: readonly string[];
  readonly help: string;
  /** Of a histogram: upper bounds. */
  readonly buckets?: readonly number[];
}

const both = ["api", "worker"] as const;

/**
 * Every metric of the service; the table in docs/operations/metrics.md is made from this list. The values of a label come from
 * a fixed list or from the catalog, never from a caller.
 */
export const metricList = {
  inference_calls_total: {
    type: "counter",
    of: ["api"],
    labels: ["endpoint", "model", "status", "code"],
    help: "Calls that ended (499: disconnected), and requests that were refused: those have the model `other`. `code` is that of the error, or `none`",
  },
  inference_call_duration_seconds: {
    type: "histogram",
    of: ["api"],
    labels: ["endpoint", "model"],
    help: "Time from the end of an admitted call's body to the end of its answer",
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900],
  },
  inference_time_to_first_byte_seconds: {
    type: "histogram",
    of: ["api"],
    labels: ["model"],
    help: "Of streams: time from the end of the call's body to the first event, pings aside",
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  },
  inference_queue_wait_seconds: {
    type: "histogram",
    of: ["worker"],
    labels: ["pool"],
    help: "Time from the end of a call's body to its start in this worker",
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60],
  },
  inference_build_info: {
    type: "gauge",
    of: both,
    labels: ["process", "version", "node"],
    help: "1, with the version that runs",
  },
  inference_catalog_info: {
    type: "gauge",
    of: both,
    labels: ["hash"],
    help: "1, with the hash of this process's catalog",
  },
  inference_catalog_differs: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "1 while a worker has another catalog than this API instance, else 0",
  },
  inference_open_calls: {
    type: "gauge",
    of: ["api"],
    labels: [],
    help: "Paid calls that this instance has admitted and not ended",
  },
  inference_pool_workers: {
    type: "gauge",
    of: ["api"],
    labels: ["pool"],
    help: "Worker processes that serve the pool",
  },
  inference_pool_running: {
    type: "gauge",
    of: ["api"],
    labels: ["pool"],
    help: "Calls that run in the workers of the pool",
  },
  inference_pool_free: {
    type: "gauge",
    of: ["api"],
    labels: ["pool"],
    help: "Calls that its workers could run in addition",
  },
  inference_pool_waiting: {
    type: "gauge",
    of: ["api"],
    labels: ["pool"],
    help: "Calls that wait in the queue of the pool",
  },
  inference_pool_oldest_waiting_seconds: {
    type: "gauge",
    of: ["api"],
    labels: ["pool"],
    help: "Time for which the oldest job in the queue has waited; 0 if none waits",
  },
  inference_upstream_state: {
    type: "gauge",
    of: both,
    labels: ["upstream"],
    help: "2 ready, 1 circuit breaker open, 0 no key: in this worker; for the API the best state among the workers",
  },
  inference_store_ping_seconds: {
    type: "gauge",
    of: both,
    labels: ["store"],
    help: "Time in which `mongodb`, `redis` or (API only) `s3` answered a ping; absent if it did not within a second",
  },
} as const satisfies Record<`inference_${string}`, Definition>;

/** The values of `inference_upstream_state`. */
export const upstreamStates = { "no key": 0, open: 1, ready: 2 } as const;

type MetricName = keyof typeof metricList;
type NameOf<Type extends Definition["type"]> = {
  [Name in MetricName]: (typeof metricList)[Name]["type"] extends Type ? Name : never;
}[MetricName];
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
  function gauge<Name extends NameOf<"gauge">>(name: Name, read: () => Samples<Name> | Promise<Samples<Name>>): void {
    const { labels } = metricList[name];
    const values: Gauge<string> = new Gauge({
      ...options(name),
      async collect() {
        const samples = await resultWithin(clock, gatherMs, read);
        values.reset();
        // Without labels a reset sets 0.
        if (labels.length === 0) values.remove();
        for (const [of, value] of samples ?? []) values.set(of, value);
      },
    });
  }

  const options = (name: MetricName) => {
    const { help, labels } = metricList[name];
    return { name, help, labelNames: [...labels] as string[], registers: [registry] };
  };

  /** Returns how to count one. */
  function counter<Name extends NameOf<"counter">>(name: Name): (labels: Labels<Name>) => void {
    const counted = new Counter(options(name));
    return (labels) => counted.inc(labels);
  }

  /** Returns how to observe one. */
  function histogram<Name extends NameOf<"histogram">>(name: Name): (labels: Labels<Name>, value: number) => void {
    const observed = new Histogram({ ...options(name), buckets: [...metricList[name].buckets] });
    return (labels, value) => observed.observe(labels, value);
  }

  const version = { process, version: serviceManifest.version, node: globalThis.process.versions.node };
  gauge("inference_build_info", () => [[version, 1]]);

  return {
    process,
    gauge,
    counter,
    histogram,
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
