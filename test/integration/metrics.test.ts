import { createServer } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { loadCatalog } from "#catalog";
import { pools } from "#jobs";
import { systemClock } from "#platform/clock";
import { loadConfig } from "#platform/config";
import { createMetrics, metricList } from "#platform/observability/metrics";
import { serveMetrics } from "#platform/observability/metrics-server";
import { listen } from "#platform/process/listen";
import { startApi } from "../../api/start.ts";
import { log } from "../support/jobs-setup.ts";
import { scrape } from "../support/metrics.ts";
import { mockError } from "../support/mock-openai.ts";
import { ownServers, testStores } from "../support/servers.ts";
import { environment, eventually, ready, startService } from "../support/service.ts";
import { asking, gate, localModel, providerModel, startWithProvider } from "../support/service-setup.ts";

const listed = (process: "api" | "worker") =>
  new Set(
    Object.entries(metricList).flatMap(([name, { of }]) => ((of as readonly string[]).includes(process) ? [name] : [])),
  );

test("each process has the metrics of the list, and a label has only values that we know", async () => {
  const service = await startService(await testStores());
  // A store that takes longer than a second to answer has no time.
  const [api, worker] = await eventually(async () => {
    const found = await Promise.all([scrape(service.metrics.api), scrape(service.metrics.worker)]);
    const pings = found.map((samples) => samples.labels("inference_store_ping_seconds").length);
    return pings[0] === 3 && pings[1] === 2 && found;
  });
  expect(new Set(api.names)).toEqual(listed("api"));
  expect(new Set(worker.names)).toEqual(listed("worker"));

  const catalog = loadCatalog(undefined);
  const upstreams = new Set(catalog.upstreams.keys());
  for (const samples of [api, worker]) {
    expect(samples.labels("inference_catalog_info")).toEqual([{ hash: catalog.hash }]);
    const found = samples.labels("inference_upstream_state").map(({ upstream }) => upstream);
    expect(new Set(found)).toEqual(upstreams);
    expect(samples.value("inference_upstream_state", { upstream: "local" })).toBe(2);
    expect(samples.value("inference_upstream_state", { upstream: "openai" })).toBe(0);
  }
  for (const name of api.names.filter((name) => name.startsWith("inference_pool_")))
    expect(api.labels(name).map(({ pool }) => pool)).toEqual([...pools]);
  expect(api.value("inference_catalog_differs")).toBe(0);
  expect(api.labels("inference_store_ping_seconds").map(({ store }) => store)).toEqual(["mongodb", "redis", "s3"]);
  expect(worker.labels("inference_store_ping_seconds").map(({ store }) => store)).toEqual(["mongodb", "redis"]);
  expect(api.value("inference_store_ping_seconds", { store: "redis" })).toBeGreaterThan(0);
});

test("calls that run, wait and are open are counted, by pool", async () => {
  const { service, provider } = await startWithProvider({ WORKER_CONCURRENCY_CHAT: "1" });
  onTestFinished(() => provider.close());
  const { opened, open } = gate();
  provider.always({ beforeHeaders: opened });
  const customer = await service.account("5");
  const calls = [0, 1].map(() => customer.post("/v1/chat/completions", asking(providerModel)));
  const chat = { pool: "chat" };
  const samples = await eventually(async () => {
    const found = await scrape(service.metrics.api);
    return found.value("inference_pool_running", chat) === 1 && found.value("inference_open_calls") === 2 && found;
  });
  expect(samples.value("inference_pool_free", chat)).toBe(0);
  expect(samples.value("inference_pool_workers", chat)).toBe(1);
  expect(samples.value("inference_pool_free", { pool: "image" })).toBeGreaterThan(0);
  open();
  for (const call of calls) expect((await call).status).toBe(200);
  await eventually(async () => (await scrape(service.metrics.api)).value("inference_open_calls") === 0);
});

test("a call is counted once, as it ended; what callers name adds no labels", async () => {
  const { service, provider } = await startWithProvider();
  onTestFinished(() => provider.close());
  const customer = await service.account("5");
  const path = "/v1/chat/completions";
  const statusOf = async (body: unknown) => {
    const response = await customer.post(path, body);
    await response.text();
    return response.status;
  };
  provider.respond(mockError(400, "too long", { code: "context_length_exceeded" }));
  expect(await statusOf(asking(providerModel))).toBe(400);
  provider.respond(mockError(400, "odd", { code: "a_code_of_its_own" }));
  expect(await statusOf(asking(providerModel))).toBe(400);
  expect(await statusOf({ ...asking(localModel), stream: true })).toBe(200);
  for (const model of ["no/such-1", "no/such-2"]) expect(await statusOf(asking(model))).toBe(404);
  expect((await fetch(`${service.baseUrl}${path}`, { method: "POST", body: "{}" })).status).toBe(401);

  // A caller may have the whole response shortly before its call has ended.
  const samples = await eventually(async () => {
    const found = await scrape(service.metrics.api);
    const calls = found
      .labels("inference_calls_total")
      .map((labels) => found.value("inference_calls_total", labels) ?? 0);
    const isCounted = calls.reduce((sum, each) => sum + each, 0) >= 6;
    return found.value("inference_open_calls") === 0 && isCounted && found;
  });
  const counted = samples.labels("inference_calls_total").map((labels) => ({
    ...labels,
    calls: samples.value("inference_calls_total", labels),
  }));
  const row = (model: string, status: string, code: string, calls = 1) => ({
    endpoint: path,
    model,
    status,
    code,
    calls,
  });
  expect(new Set(counted)).toEqual(
    new Set([
      row(providerModel, "400", "context_length_exceeded"),
      row(providerModel, "400", "invalid_value"),
      row(localModel, "200", "none"),
      row("other", "404", "model_not_found", 2),
      row("other", "401", "invalid_api_key"),
    ]),
  );
  expect(samples.labels("inference_time_to_first_byte_seconds_count")).toMatchObject([{ model: localModel }]);
  const waits = await scrape(service.metrics.worker);
  expect(waits.value("inference_queue_wait_seconds_count", { pool: "chat" })).toBe(3);
  expect(samples.value("inference_call_duration_seconds_count", { endpoint: path, model: localModel })).toBe(1);
});

test("while Redis is unavailable a scrape answers, without what Redis knows", async () => {
  const { redis, stores } = await ownServers({ redis: true });
  const service = await startService(stores);
  await redis.stop();
  const samples = await eventually(async () => {
    const found = await scrape(service.metrics.api);
    // Each reply counts for a second.
    const pinged = found.labels("inference_store_ping_seconds").map(({ store }) => store);
    const isKnown = pinged.includes("mongodb") && !pinged.includes("redis");
    return found.labels("inference_pool_waiting").length === 0 && isKnown && found;
  });
  expect(samples.labels("inference_pool_oldest_waiting_seconds")).toEqual([]);
  expect(samples.value("inference_store_ping_seconds", { store: "redis" })).toBeUndefined();
  expect(samples.value("inference_store_ping_seconds", { store: "mongodb" })).toBeGreaterThan(0);
  expect(samples.value("inference_open_calls")).toBe(0);
  expect((await scrape(service.metrics.worker)).value("inference_upstream_state", { upstream: "local" })).toBe(2);
  await redis.start();
  await ready(service);
  await eventually(async () => (await fetch(`${service.metrics.worker}/readyz`)).ok);
});

test("the metrics' port has nothing else: no calls, no other paths, no other methods", async () => {
  const { metrics, baseUrl } = await startService(await testStores());
  const statusOf = async (path: string, init?: RequestInit) => (await fetch(`${metrics.api}${path}`, init)).status;
  expect(await statusOf("/v1/models")).toBe(404);
  expect(await statusOf("/livez")).toBe(404);
  expect(await statusOf("/metrics", { method: "POST", body: "x" })).toBe(405);
  expect(await statusOf("/metrics", { method: "HEAD" })).toBe(200);
  expect((await fetch(`${baseUrl}/metrics`)).status).toBe(404);
});

test("a port in use stops the start with the variable's name, before anything else begins", async () => {
  const other = createServer();
  const port = await listen(other, { variable: "-", port: 0, host: "127.0.0.1" });
  onTestFinished(() => void other.close());
  const start = async (env: Record<string, string>) => {
    const config = loadConfig(environment(await testStores(), env));
    return startApi({ config, clock: systemClock, log, metrics: createMetrics("api", systemClock) });
  };
  await expect(start({ METRICS_PORT: String(port) })).rejects.toThrow(
    `METRICS_PORT: port ${port} of 127.0.0.1 is in use. Set another one, or 0 for any free one.`,
  );
});

test("without a setting a process takes another port while 9464 is in use, and serves its metrics there", async () => {
  const other = createServer();
  // The port is in use, whichever process has it by now.
  await listen(other, { variable: "-", port: 9464, host: "127.0.0.1" }).catch(() => undefined);
  onTestFinished(() => void other.close());
  const metrics = createMetrics("api", systemClock);
  const server = await serveMetrics({ config: { METRICS_HOST: "127.0.0.1" }, metrics, log });
  onTestFinished(() => server.close());
  expect(server.port).not.toBe(9464);
  expect((await fetch(`http://127.0.0.1:${server.port}/metrics`)).status).toBe(200);
});
