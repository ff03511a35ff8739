import { expect, test } from "vitest";
import { createMetrics, metricList } from "#platform/observability/metrics";
import { createManualClock } from "../support/manual-clock.ts";
import { samplesOf } from "../support/metrics.ts";

const open = (process: "api" | "worker" = "api") => {
  const clock = createManualClock();
  const metrics = createMetrics(process, clock);
  return { clock, metrics, read: async () => samplesOf(await metrics.text()) };
};

test("a gauge is read at each scrape, and values that are gone do not stay", async () => {
  const { metrics, read } = open();
  let pools = ["chat", "image"];
  metrics.gauge("inference_pool_free", () => pools.map((pool, i) => [{ pool }, i + 1]));
  expect((await read()).labels("inference_pool_free")).toEqual([{ pool: "chat" }, { pool: "image" }]);
  pools = ["image"];
  const samples = await read();
  expect(samples.labels("inference_pool_free")).toEqual([{ pool: "image" }]);
  expect(samples.value("inference_pool_free", { pool: "image" })).toBe(1);
  expect(samples.help("inference_pool_free")).toBe(metricList.inference_pool_free.help);
});

test("values that cannot be read, or not in time, are absent; the others are included", async () => {
  const { metrics, clock, read } = open();
  metrics.gauge("inference_open_calls", () => Promise.reject(new Error("unavailable")));
  metrics.gauge("inference_catalog_differs", () => undefined);
  metrics.gauge("inference_pool_free", () => new Promise(() => {}));
  metrics.gauge("inference_pool_running", () => [[{ pool: "chat" }, 3]]);
  const reading = read();
  await new Promise(setImmediate);
  clock.advance(2_000);
  const samples = await reading;
  expect(samples.value("inference_open_calls")).toBeUndefined();
  expect(samples.value("inference_catalog_differs")).toBeUndefined();
  expect(samples.labels("inference_pool_free")).toEqual([]);
  expect(samples.value("inference_pool_running", { pool: "chat" })).toBe(3);
  expect(clock.pending()).toBe(0);
});

test("scrapes that come together share one reading, and the next one reads again", async () => {
  const { metrics, read } = open();
  let reads = 0;
  metrics.gauge("inference_open_calls", () => [[{}, ++reads]]);
  const together = await Promise.all([read(), read(), read()]);
  expect(together.map((samples) => samples.value("inference_open_calls"))).toEqual([1, 1, 1]);
  expect((await read()).value("inference_open_calls")).toBe(2);
});

test("two processes in one have separate registries", async () => {
  const [api, worker] = [open("api"), open("worker")];
  api.metrics.gauge("inference_open_calls", () => [[{}, 1]]);
  expect((await worker.read()).names).toEqual(["inference_build_info"]);
  expect((await worker.read()).labels("inference_build_info")).toEqual([
    { process: "worker", version: expect.stringMatching(/^\d+\./) as string, node: process.versions.node },
  ]);
});

test("Node's own metrics have the names that dashboards expect", async () => {
  const { metrics, read } = open();
  metrics.addRuntime();
  const { names } = await read();
  expect(names).toEqual(
    expect.arrayContaining([
      "process_cpu_seconds_total",
      "process_resident_memory_bytes",
      "nodejs_eventloop_lag_p99_seconds",
      "nodejs_heap_size_used_bytes",
      "nodejs_gc_duration_seconds",
    ]),
  );
});
