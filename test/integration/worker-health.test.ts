import { expect, onTestFinished, test, vi } from "vitest";
import { createQueues } from "#jobs";
import { systemClock } from "#platform/clock";
import { loadConfig } from "#platform/config";
import { createMetrics } from "#platform/observability/metrics";
import { createWorkerHealth } from "../../workers/health.ts";
import { startWorker } from "../../workers/start.ts";
import { connect, log, paidCall } from "../support/jobs-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { movableClock } from "../support/movable-clock.ts";
import { migrateDatabase } from "../support/schema.ts";
import { ownServers, type Stores, testStores } from "../support/servers.ts";
import { environment, eventually, startService } from "../support/service.ts";

const status = async (url: string) => (await fetch(url)).status;
const probes = { mongodb: async () => 0, redis: async () => 0 };

/** A real queue, and a worker's watch over it; the test controls the clock and the pool's load. */
async function openWatch(stores: Stores) {
  const clock = createManualClock(Date.now());
  const queues = createQueues({ redis: await connect(stores, "fail-fast"), log });
  onTestFinished(() => queues.close());
  const state = { free: 1, lastTakenAt: clock.now() };
  const pools = [
    { pool: "chat" as const, load: () => state, lastTakenAt: () => new Map([["chat", state.lastTakenAt]]) },
  ];
  let looks = 0;
  const oldestIn: typeof queues.oldestIn = (queue) =>
    queues.oldestIn(queue).finally(() => {
      looks++;
    });
  const health = createWorkerHealth({ pools, queues: { oldestIn }, probes, clock, log });
  /** The worker checks every five seconds. */
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 5_000) {
      const before = looks;
      clock.advance(5_000);
      await eventually(() => looks > before);
      await new Promise(setImmediate);
    }
  };
  /** The job has the time of the clock, however long the test has taken until then. */
  const wait = async () => {
    vi.setSystemTime(clock.now());
    await queues.enqueue("chat", paidCall(`req_${Math.random()}`), 0);
    vi.useRealTimers();
  };
  return { state, clock, queues, wait, pass, isLive: () => health.live().ok };
}

test("a worker with free slots that takes none of the jobs that wait is not live after half a minute", async () => {
  const { wait, pass, isLive, state, clock } = await openWatch(await testStores());
  await wait();
  await pass(30_000);
  expect(isLive()).toBe(true);
  await pass(10_000);
  expect(isLive()).toBe(false);
  state.lastTakenAt = clock.now();
  await pass(5_000);
  expect(isLive()).toBe(true);
});

test("a full worker stays live, however long jobs wait", async () => {
  const { wait, pass, isLive, state } = await openWatch(await testStores());
  state.free = 0;
  await wait();
  await pass(120_000);
  expect(isLive()).toBe(true);
});

test("a worker stays live without jobs, and when the first job comes after a long time", async () => {
  const { wait, pass, isLive } = await openWatch(await testStores());
  await pass(120_000);
  expect(isLive()).toBe(true);
  await wait();
  await pass(15_000);
  expect(isLive()).toBe(true);
});

test("a worker stays live while Redis is unavailable, and has half a minute to take jobs when it is back", async () => {
  const { redis, stores } = await ownServers({ redis: true });
  const { wait, pass, isLive, queues } = await openWatch(stores);
  await wait();
  await pass(25_000);
  await redis.stop();
  await pass(120_000);
  expect(isLive()).toBe(true);
  await redis.start();
  await eventually(() => queues.oldestWaiting("chat").catch(() => undefined));
  await pass(30_000);
  expect(isLive()).toBe(true);
  await pass(60_000);
  expect(isLive()).toBe(false);
});

test("the job that has waited longest is found in every priority and among scheduled ones", async () => {
  const queues = createQueues({ redis: await connect(await testStores(), "fail-fast"), log });
  onTestFinished(() => queues.close());
  expect(await queues.oldestWaiting("chat")).toBeUndefined();
  const before = Date.now();
  // Later ones come first in the queue.
  for (const inFlight of [64, 4, 0]) await queues.enqueue("chat", paidCall(`req_${inFlight}`), inFlight);
  const since = await queues.oldestWaiting("chat");
  expect(since).toBeGreaterThanOrEqual(before);
  expect(since).toBeLessThanOrEqual(Date.now());
  // Jobs for which nobody waits may wait longer.
  expect(await queues.oldestWaiting("chat", "detached")).toBeUndefined();
  for (const inFlight of [4, 0])
    await queues.enqueueDetached("chat", { account: "acct_1", requestId: `req_job_${inFlight}` }, inFlight);
  expect(await queues.oldestWaiting("chat", "detached")).toBeGreaterThanOrEqual(Number(since));
  expect(await queues.oldestWaiting("chat")).toBe(since);
  const scheduledAt = Date.now();
  await queues.schedule();
  // Every job is due at once; an hourly one has not waited for an hour.
  const due = await eventually(() => queues.oldestWaiting("maintenance"));
  expect(due).toBeGreaterThan(scheduledAt - 60_000);
  expect(due).toBeLessThan(Date.now() + 60_000);
});

test("a worker whose consumption stopped answers 503 to /livez once a job waits", async () => {
  const stores = await testStores();
  const { clock, advance } = movableClock();
  const env = environment(stores);
  const deps = { config: loadConfig(env), clock, log, env, metrics: createMetrics("worker", clock) };
  await migrateDatabase(stores.MONGODB_URI);
  const worker = await startWorker(deps);
  onTestFinished(async () => {
    for (const { run } of worker.shutdown) await run();
  });
  const origin = `http://127.0.0.1:${worker.metricsPort}`;
  expect(await status(`${origin}/livez`)).toBe(200);
  await expect.poll(() => status(`${origin}/readyz`)).toBe(200);

  await worker.shutdown.find(({ name }) => name === "stop taking jobs")?.run();
  const queues = createQueues({ redis: await connect(stores, "fail-fast"), log });
  onTestFinished(() => queues.close());
  await queues.enqueue("chat", paidCall("req_1"), 0);
  // A check that is still running when the second after it is due counts as a pause of the worker.
  const liveness = () => {
    advance(5_000);
    return status(`${origin}/livez`);
  };
  await expect.poll(liveness, { interval: 500 }).toBe(503);
  const readiness = async () => {
    const ready = await fetch(`${origin}/readyz`);
    return [ready.status, await ready.json()];
  };
  await expect.poll(readiness).toEqual([
    503,
    {
      status: "not ready",
      mongodb: true,
      redis: true,
      consuming: {
        chat: false,
        embeddings: true,
        image: true,
        media: true,
        batches: expect.any(Boolean),
        webhooks: true,
        maintenance: expect.any(Boolean),
      },
    },
  ]);
});

test("a worker that drains is live and not ready", async () => {
  const stores = await testStores();
  const env = environment(stores);
  const metrics = createMetrics("worker", systemClock);
  await migrateDatabase(stores.MONGODB_URI);
  const worker = await startWorker({ config: loadConfig(env), clock: systemClock, log, env, metrics });
  const origin = `http://127.0.0.1:${worker.metricsPort}`;
  const closeAt = worker.shutdown.findIndex(({ name }) => name === "close");
  for (const { run } of worker.shutdown.slice(0, closeAt)) await run();
  expect([await status(`${origin}/livez`), await status(`${origin}/readyz`)]).toEqual([200, 503]);
  for (const { run } of worker.shutdown.slice(closeAt)) await run();
  await expect(fetch(origin)).rejects.toThrow("fetch failed");
});

test("without Redis a worker is live and not ready; the API says which store does not answer", async () => {
  const { redis, s3, stores } = await ownServers({ redis: true, s3: true });
  const { baseUrl, metrics } = await startService(stores);
  const readiness = async () => {
    const response = await fetch(`${baseUrl}/readyz`);
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  await expect.poll(readiness).toMatchObject({
    status: 200,
    body: { status: "ready", mongodb: true, redis: true, s3: true },
  });
  await s3.stop();
  await expect.poll(readiness).toMatchObject({
    status: 200,
    body: { status: "degraded", mongodb: true, redis: true, s3: false },
  });
  await redis.stop();
  await expect.poll(readiness).toMatchObject({
    status: 503,
    body: { status: "not ready", mongodb: true, redis: false },
  });
  await eventually(async () => (await status(`${metrics.worker}/readyz`)) === 503);
  expect(await status(`${metrics.worker}/livez`)).toBe(200);
  await redis.start();
  await eventually(async () => (await status(`${metrics.worker}/readyz`)) === 200);
  await eventually(async () => (await readiness()).status === 200);
});
