import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "@prometheus-io/client";
import serviceManifest from "../../../package.json" with { type: "json" };
import { type Clock, resultWithin } from "../clock.ts";
import { type MetricType, metricList } from "./metric-list.ts";

export { groups, metricList, upstreamStateValues } from "./metric-list.ts";

type MetricName = keyof typeof metricList;
type NameOf<Type extends MetricType> = {
  [Name in MetricName]: (typeof metricList)[Name]["type"] extends Type ? Name : never;
}[MetricName];
type Labels<Name extends MetricName> = Readonly<Record<(typeof metricList)[Name]["labels"][number], string>>;
/** One value for each combination of labels. The metric is not exported while this is undefined. */
type Samples<Name extends MetricName> = readonly (readonly [labels: Labels<Name>, value: number])[] | undefined;

const gatherMs = 2_000;
/** The default of 10 ms wakes an idle process a hundred times a second. */
const loopSampleMs = 50;

export type Metrics = ReturnType<typeof createMetrics>;

/** The metrics of one process. Values are read when they are scraped. */
export function createMetrics(process: "api" | "worker", clock: Clock) {
  const registry = new Registry();
  let reading: Promise<string> | undefined;

  /** A gauge whose value is read at each scrape. It is not exported while `read` fails or takes too long. */
  function gauge<Name extends NameOf<"gauge">>(name: Name, read: () => Samples<Name> | Promise<Samples<Name>>): void {
    const { labels } = metricList[name];
    const values: Gauge<string> = new Gauge({
      ...options(name),
      async collect() {
        const samples = await resultWithin(clock, gatherMs, read);
        values.reset();
        // A reset sets a metric without labels to 0.
        if (labels.length === 0) values.remove();
        for (const [of, value] of samples ?? []) values.set(of, value);
      },
    });
  }

  const options = (name: MetricName) => {
    const { help, labels } = metricList[name];
    return { name, help, labelNames: [...labels] as string[], registers: [registry] };
  };

  /** Returns a function that increments the counter, by 1 or by the given count. */
  function counter<Name extends NameOf<"counter">>(name: Name): (labels: Labels<Name>, count?: number) => void {
    const counted = new Counter(options(name));
    return (labels, count) => counted.inc(labels, count);
  }

  function histogram<Name extends NameOf<"histogram">>(name: Name): (labels: Labels<Name>, value: number) => void {
    const observed = new Histogram({ ...options(name), buckets: [...metricList[name].buckets] });
    return (labels, value) => observed.observe(labels, value);
  }

  const version = { process, version: serviceManifest.version, node: globalThis.process.versions.node };
  gauge("inference_build_info", () => [[version, 1]]);

  return {
    process,
    version: version.version,
    gauge,
    counter,
    histogram,
    /**
     * Adds Node's own metrics under the names that dashboards for Node expect (`process_...`, `nodejs_...`). Call it
     * once per process, because it measures for the lifetime of the process.
     */
    addRuntime: (): void =>
      collectDefaultMetrics({
        register: registry,
        eventLoopUtilizationTimeout: 1_000,
        eventLoopMonitoringPrecision: loopSampleMs,
      }),
    /** Returns Prometheus' text format. Concurrent scrapes share one reading. */
    text(): Promise<string> {
      reading ??= registry.metrics().finally(() => {
        reading = undefined;
      });
      return reading;
    },
    contentType: registry.contentType,
  };
}
