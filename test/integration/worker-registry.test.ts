import { expect, onTestFinished, test } from "vitest";
import { createQueues, createWorkerRegistry, registerWorker, type WorkerRecord } from "#jobs";
import { connect, expectExpiry, log, paidCall } from "../support/jobs-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { ownServers, type Stores, testStores } from "../support/servers.ts";
import { eventually } from "../support/service.ts";

const chatWorker: WorkerRecord = {
  pools: { chat: { free: 5, running: 0 } },
  upstreams: { local: "ready" },
  catalog: "a",
};

async function openWorker(stores: Stores, worker: string, record = chatWorker) {
  const clock = createManualClock();
  const redis = await connect(stores, "waiting");
  const registration = registerWorker({ worker, redis, clock, log, record: () => record });
  /** Writes the record, and lets it stay: a slow machine may need more than its 5 s. */
  const write = () => Promise.all([registration.write(), redis.persist(`{worker}:${worker}`)]);
  return { registration, write, redis, clock };
}

async function openApi(stores: Stores) {
  const clock = createManualClock();
  const redis = await connect(stores, "fail-fast");
  const queues = createQueues({ redis, log });
  const registry = createWorkerRegistry({ redis, queues, catalog: "a", clock, log });
  onTestFinished(() => registry.stop());
  await registry.start();
  /** Resolves when the registry, which reads every second, shows it. */
  const shows = (what: () => boolean) =>
    eventually(() => {
      clock.advance(1_000);
      return what();
    });
  return { registry, queues, clock, redis, shows };
}

test("before any worker was seen nothing is served, and nothing is known", async () => {
  const { registry } = await openApi(await testStores());
  expect([registry.known(), registry.serving("chat"), registry.backlog("chat")]).toEqual([false, 0, 0]);
  expect(registry.upstream("local")).toBe("no key");
});

test("a worker is in the registry a second after it came, and out of it a second after it stopped", async () => {
  const stores = await testStores();
  const { registry, shows } = await openApi(stores);
  const { registration, write } = await openWorker(stores, "wrk_1");
  await write();
  await shows(() => registry.serving("chat") === 1);
  expect([registry.known(), registry.serving("embeddings"), registry.upstream("local")]).toEqual([true, 0, "ready"]);
  await registration.stop();
  await shows(() => registry.serving("chat") === 0);
});

test("measurements are averaged over workers; a record in another shape still counts", async () => {
  const stores = await testStores();
  const speeds = (streamMs: number, calls: number) => ({ local: { chat: { calls, streamMs } } });
  const workers = await Promise.all([
    openWorker(stores, "wrk_1", { ...chatWorker, speeds: speeds(100, 3) }),
    openWorker(stores, "wrk_2", { ...chatWorker, speeds: speeds(500, 1) }),
    openWorker(stores, "wrk_3", { ...chatWorker, speeds: "fast" as never }),
  ]);
  await Promise.all(workers.map(({ write }) => write()));
  const { registry } = await openApi(stores);
  expect(registry.speed("local", "chat")).toEqual({ calls: 4, streamMs: 200 });
  expect([registry.speed("local", "other"), registry.serving("chat")]).toEqual([undefined, 3]);
});

test("a pool's pressure is that of the processes that serve it, without lines of batches", async () => {
  const stores = await testStores();
  const chat = { free: 1, running: 7, lines: 5 };
  const records: WorkerRecord[] = [
    { ...chatWorker, pools: { chat, embeddings: { free: 1, running: 1 } }, utilization: 0.9 },
    { ...chatWorker, pools: { chat }, utilization: 0.3 },
    { ...chatWorker, pools: { image: { free: 1, running: 3 }, maintenance: { free: 1, running: 3 } } },
  ];
  const opened = await Promise.all(records.map((record, i) => openWorker(stores, `wrk_${i}`, record)));
  await Promise.all(opened.map(({ write }) => write()));
  const { registry } = await openApi(stores);
  const of = (["chat", "embeddings", "image", "media"] as const).map((pool) => registry.pressure(pool));
  expect(of).toEqual([
    { calls: 5, utilization: 0.6 },
    { calls: 3, utilization: 0.9 },
    { calls: 3, utilization: 0 },
    { calls: 0, utilization: 0 },
  ]);
});

test("an upstream is as ready as it is in the best worker", async () => {
  const stores = await testStores();
  const worker = (name: string, upstreams: WorkerRecord["upstreams"]) =>
    openWorker(stores, name, { ...chatWorker, upstreams });
  const workers = await Promise.all([
    worker("wrk_1", { a: "ready", b: "open", c: "no key", d: "no key" }),
    worker("wrk_2", { a: "open", b: "no key", c: "ready", d: "no key" }),
  ]);
  await Promise.all(workers.map(({ write }) => write()));
  const { registry } = await openApi(stores);
  expect(registry.serving("chat")).toBe(2);
  const states = ["a", "b", "c", "d", "unknown"].map((id) => registry.upstream(id));
  expect(states).toEqual(["ready", "open", "ready", "no key", "no key"]);
});

test("a record is written every second, and expires 5 s after the last", async () => {
  const stores = await testStores();
  const { registration, redis, clock } = await openWorker(stores, "wrk_1");
  onTestFinished(() => registration.stop());
  const firstAt = performance.now();
  await registration.write();
  await expectExpiry(redis, "{worker}:wrk_1", 5_000, firstAt);
  await redis.del("{worker}:wrk_1");
  const secondAt = performance.now();
  clock.advance(1_000);
  // The index, which does not expire, has the time of the last write.
  await expect.poll(async () => Number(await redis.zscore("{worker}:index", "wrk_1"))).toBe(clock.now());
  await expectExpiry(redis, "{worker}:wrk_1", 5_000, secondAt);
});

test("when the last worker's record expires nothing is served, but the last known upstreams stay", async () => {
  const stores = await testStores();
  const { write, redis } = await openWorker(stores, "wrk_1");
  await write();
  const { registry, shows } = await openApi(stores);
  await redis.pexpire("{worker}:wrk_1", 0);
  await shows(() => registry.serving("chat") === 0);
  expect([registry.known(), registry.upstream("local")]).toEqual([true, "ready"]);
  // Another worker takes over: upstreams of only the first one are gone.
  const other = await openWorker(stores, "wrk_2", { ...chatWorker, upstreams: { other: "open" } });
  await other.write();
  await shows(() => registry.serving("chat") === 1);
  expect([registry.upstream("local"), registry.upstream("other")]).toEqual(["no key", "open"]);
});

test("catalogs differ while a worker has another one, or does not say which", async () => {
  const stores = await testStores();
  const { registry, shows } = await openApi(stores);
  expect(registry.catalog()).toEqual({ hash: "a", workers: {}, differs: false });
  const [same, other] = await Promise.all([
    openWorker(stores, "wrk_1"),
    openWorker(stores, "wrk_2", { ...chatWorker, catalog: "b" }),
  ]);
  await Promise.all([same, other].map(({ write }) => write()));
  await shows(() => registry.catalog().differs);
  expect(registry.catalog().workers).toEqual({ a: 1, b: 1 });
  await other.registration.stop();
  await shows(() => !registry.catalog().differs);
  const { catalog: _, ...old } = chatWorker;
  await other.redis.set("{worker}:wrk_2", JSON.stringify(old));
  await other.redis.zadd("{worker}:index", 0, "wrk_2");
  await shows(() => registry.catalog().differs);
  expect(registry.catalog().workers).toEqual({ a: 1, unknown: 1 });
});

test("a worker that died is forgotten after a minute", async () => {
  const stores = await testStores();
  const { registration, redis } = await openWorker(stores, "wrk_1");
  await registration.write();
  await redis.del("{worker}:wrk_1");
  const { clock } = await openApi(stores);
  expect(await redis.zcard("{worker}:index")).toBe(1);
  clock.advance(60_000);
  await eventually(async () => {
    clock.advance(1_000);
    return (await redis.zcard("{worker}:index")) === 0;
  });
});

test("a worker of a newer version, with unknown pools and states, is in the registry", async () => {
  const stores = await testStores();
  const { write } = await openWorker(stores, "wrk_1", {
    ...chatWorker,
    pools: { ...chatWorker.pools, video: { free: 1, running: 0 } },
    upstreams: { ...chatWorker.upstreams, other: "resting" as never },
  });
  await write();
  const { registry } = await openApi(stores);
  expect([registry.serving("chat"), registry.upstream("local"), registry.upstream("other")]).toEqual([
    1,
    "ready",
    "open",
  ]);
});

test("an added call is no backlog while a worker has a free slot for it, or when it has ended", async () => {
  const stores = await testStores();
  const [{ write }, { registry, shows }] = [await openWorker(stores, "wrk_1"), await openApi(stores)];
  await write();
  await shows(() => registry.serving("chat") === 1);
  for (let i = 0; i < 5; i++) registry.added("chat");
  expect(registry.backlog("chat")).toBe(0);
  for (let i = 0; i < 3; i++) registry.added("chat");
  expect(registry.backlog("chat")).toBe(3);
  registry.ended("chat");
  expect(registry.backlog("chat")).toBe(2);
});

test("the backlog is the number of waiting calls and those added since it was read", async () => {
  const stores = await testStores();
  const { registry, queues, shows } = await openApi(stores);
  await Promise.all([0, 1, 2].map((i) => queues.enqueue("chat", paidCall(`req_${i}`), i)));
  await queues.enqueue("embeddings", paidCall("req_e"), 0);
  registry.added("chat");
  expect(registry.backlog("chat")).toBe(1);
  await shows(() => registry.backlog("chat") === 3);
  expect(registry.backlog("embeddings")).toBe(1);
  registry.added("chat");
  expect(registry.backlog("chat")).toBe(4);
});

test("while Redis is unavailable the last registry stays, and a worker can stop", async () => {
  const { redis: server, stores } = await ownServers({ redis: true });
  const { registration, write, redis } = await openWorker(stores, "wrk_1");
  await write();
  const { registry, clock } = await openApi(stores);
  await server.stop();
  await eventually(() => redis.status !== "ready");
  clock.advance(1_000);
  await registration.stop();
  expect([registry.serving("chat"), registry.upstream("local")]).toEqual([1, "ready"]);
  // It is too old for metrics by then.
  expect(registry.loads()?.[0]).toEqual({ pool: "chat", workers: 1, running: 0, free: 5, waiting: 0, jobsWaiting: 0 });
  clock.advance(5_000);
  expect(registry.loads()).toBeUndefined();
});
