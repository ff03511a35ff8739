import { expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "#platform/clock";
import { type Config, loadConfig } from "#platform/config";
import { createLogger } from "#platform/logger";
import { parseTraceparent, startTracing } from "#platform/observability/tracing";
import { caller, startOtlpReceiver } from "../support/otlp-receiver.ts";
import { eventually } from "../support/service.ts";

const stores = {
  REDIS_URL: "redis://redis",
  MONGODB_URI: "mongodb://mongo",
  S3_ENDPOINT: "https://s3.example.com",
  S3_ACCESS_KEY_ID: "a",
  S3_SECRET_ACCESS_KEY: "b",
};
const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" };
const start = async (env: Record<string, string>, more: { random?: () => number; lines?: string[] } = {}) => {
  const output = { write: (line: string) => void more.lines?.push(line) };
  const deps = { process: "api", clock: systemClock, log: createLogger("test", "warn", output) } as const;
  const tracing = await startTracing(loadConfig({ ...stores, ...env }), { ...deps, ...more });
  onTestFinished(() => tracing?.close());
  return tracing;
};

test("a caller's header counts as far as W3C Trace Context allows it, and has no effect else", () => {
  const [trace, span] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"];
  const parsed = { traceId: trace, spanId: span, isSampled: true };
  expect(parseTraceparent(`00-${trace}-${span}-01`)).toEqual(parsed);
  expect(parseTraceparent(`00-${trace}-${span}-02`)).toEqual({ ...parsed, isSampled: false });
  expect(parseTraceparent(`cc-${trace}-${span}-01-of-a-later-version`)).toEqual(parsed);
  const invalid = [
    undefined,
    "",
    `ff-${trace}-${span}-01`,
    `00-${trace}-${span}-01-more`,
    `00-${trace.toUpperCase()}-${span}-01`,
    `00-${"0".repeat(32)}-${span}-01`,
    `00-${trace}-${"0".repeat(16)}-01`,
    `00-${trace}-${span}-01, 00-${trace}-${span}-01`,
    `00-${trace}-${span}`,
    `cc-${trace}-${span}-01-${"x".repeat(9_000)}`,
  ];
  for (const header of invalid) expect([header, parseTraceparent(header)]).toEqual([header, undefined]);
});

test("without a receiver nothing is traced, and the SDK is not even loaded", async () => {
  const loaded = vi.fn<() => object>(() => ({}));
  vi.doMock("@opentelemetry/sdk-trace", loaded);
  onTestFinished(() => {
    vi.doUnmock("@opentelemetry/sdk-trace");
  });
  expect(await start({ OTEL_EXPORTER_OTLP_HEADERS: "a=b" })).toBeUndefined();
  expect(loaded).not.toHaveBeenCalled();
});

test("a caller can keep its calls out of the sample, but not in it", async () => {
  const sampled = async (sampler: Config["OTEL_TRACES_SAMPLER"], drawn: number, traceparent?: string) => {
    const env = { ...endpoint, OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: "0.1" };
    const tracing = await start(env, { random: () => drawn });
    return tracing?.begin("call", { traceparent }).isSampled;
  };
  const [wanting, declining] = [caller(1).traceparent, caller(1, "00").traceparent];
  expect(await sampled("parentbased_traceidratio", 0.09)).toBe(true);
  expect(await sampled("parentbased_traceidratio", 0.11)).toBe(false);
  expect(await sampled("parentbased_traceidratio", 0.11, wanting)).toBe(false);
  expect(await sampled("parentbased_traceidratio", 0.09, declining)).toBe(false);
  expect(await sampled("traceidratio", 0.09, declining)).toBe(true);
  expect(await sampled("parentbased_always_on", 0.99)).toBe(true);
  expect(await sampled("parentbased_always_off", 0, wanting)).toBe(false);
  expect(await sampled("always_on", 0.99, declining)).toBe(true);
});

test("an unsampled call passes the caller's trace on, so that logs have its id, and sends nothing", async () => {
  const receiver = await startOtlpReceiver();
  const tracing = await start({ ...receiver.env, OTEL_TRACES_SAMPLER: "always_off" });
  const { trace, traceparent } = caller(7);
  const span = tracing?.begin("call", { traceparent });
  expect(span?.ids.trace_id).toBe(trace);
  const joined = tracing?.join("process", { traceparent: span?.traceparent });
  expect(joined?.ids).toEqual(span?.ids);
  expect(joined?.child("more")).toBe(joined);
  joined?.end();
  span?.end();
  await tracing?.close();
  expect(receiver.headers).toEqual([]);
});

/** The sum over all lines of a log. */
const lostIn = (lines: readonly string[]) =>
  lines
    .map((line) => JSON.parse(line) as { dropped: number; refused: number })
    .reduce((sum, { dropped, refused }) => ({ dropped: sum.dropped + dropped, refused: sum.refused + refused }), {
      dropped: 0,
      refused: 0,
    });

test("a receiver that hangs or refuses takes a bounded amount of memory, delays no shutdown, and every loss is logged", async () => {
  const receiver = await startOtlpReceiver();
  const { promise, resolve } = Promise.withResolvers<void>();
  onTestFinished(() => resolve());
  receiver.holdUntil(promise);
  const lines: string[] = [];
  const headers = { OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20of-the-receiver" };
  const dropped: string[] = [];
  const hanging = await start({ ...receiver.env, ...headers }, { lines: dropped });
  for (let i = 0; i < 20_000; i++) hanging?.begin("call", { traceparent: undefined }).end();
  await eventually(() => receiver.headers.length > 0);
  expect(dropped).toHaveLength(1);
  await hanging?.close();
  expect(lostIn(dropped).dropped).toBeGreaterThanOrEqual(20_000 - 2_048 - 512);
  resolve();
  await eventually(() => receiver.spans.length >= 2_048);
  expect(receiver.spans.length).toBeLessThanOrEqual(2_048 + 512);

  const refusing = await start(
    { OTEL_EXPORTER_OTLP_ENDPOINT: `${receiver.env.OTEL_EXPORTER_OTLP_ENDPOINT}/no`, ...headers },
    { lines },
  );
  for (let i = 0; i < 1_500; i++) refusing?.begin("call", { traceparent: undefined }).end();
  await refusing?.close();
  await eventually(() => lostIn(lines).refused === 1_500);
  expect(lines.length).toBeLessThanOrEqual(4);
  expect([...dropped, ...lines].join("")).not.toContain("of-the-receiver");
});
