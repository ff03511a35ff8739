import { readFileSync } from "node:fs";
import { type Job, Worker } from "bullmq";
import { expect, onTestFinished, test } from "vitest";
import { createQueues, jobCatalog, type PaidCall, payloadsOf } from "#jobs";
import { connect, log, loseData, openQueue, paidCall } from "../support/jobs-setup.ts";
import { ownServers, type Stores, testStores } from "../support/servers.ts";
import { eventually } from "../support/service.ts";

async function open(stores: Stores) {
  const queues = createQueues({ redis: await connect(stores, "fail-fast"), log });
  onTestFinished(() => queues.close());
  return queues;
}

/** A worker that holds each job until it is released. */
async function work(stores: Stores, pool: string, concurrency = 1) {
  const taken: Job[] = [];
  const waiting: (() => void)[] = [];
  const state = { letAllGo: false };
  const worker = new Worker(
    pool,
    async (job) => {
      taken.push(job);
      if (!state.letAllGo) await new Promise<void>((resolve) => waiting.push(resolve));
    },
    { connection: await connect(stores, "blocking"), concurrency, prefix: `{${pool}}`, skipVersionCheck: true },
  );
  worker.on("error", () => {});
  const letGo = () => {
    state.letAllGo = true;
    for (const go of waiting.splice(0)) go();
  };
  onTestFinished(async () => {
    letGo();
    await worker.close();
  });
  return { taken, letGo };
}

/** The request ids that a job carries. */
const callsOf = ({ data }: Pick<Job, "data">) => payloadsOf(data).map((each) => (each as PaidCall).requestId);

const withKey = (requestId: string) => paidCall(requestId, { idempotencyKeyId: "idem_1" });

test("calls that one API instance admits in one turn share one job, and other processes find it by the instance", async () => {
  const stores = await testStores();
  const queues = await open(stores);
  const payloads = ["req_1", "req_2"].map((id) => paidCall(id, { body: { json: '{"model": "local/chat"}' } }));
  const jobs = await Promise.all(payloads.map((payload) => queues.enqueue("chat", payload, 0)));
  expect(jobs[1]).toBe(jobs[0]);
  expect(await queues.backlog("chat")).toBe(2);
  expect([await queues.hasJobsOf("api_test"), await queues.hasJobsOf("api_tes")]).toEqual([true, false]);

  const { taken, letGo } = await work(stores, "chat");
  await eventually(() => taken.length === 1);
  expect(taken[0]).toMatchObject({ id: jobs[0]?.id, name: "chat", attemptsStarted: 1 });
  expect(payloadsOf(taken[0]?.data)).toEqual(payloads);
  expect(await queues.hasJobsOf("api_test")).toBe(true);
  letGo();
  await eventually(async () => !(await queues.hasJobsOf("api_test")));
});

test("a batch takes up to 16 calls and 256 KB, of one name, class and instance; large bodies ride alone", async () => {
  const stores = await testStores();
  const queues = await open(stores);
  const enqueue = (ids: readonly string[], fields: Partial<PaidCall> = {}, inFlight = 0) =>
    Promise.all(ids.map((id) => queues.enqueue("chat", paidCall(id, fields), inFlight)));
  const numbered = (name: string, count: number) => Array.from({ length: count }, (_, i) => `req_${name}${i}`);
  const json = "x".repeat(60 * 1024);
  await Promise.all([
    enqueue(numbered("many", 17)),
    enqueue(numbered("long", 5), { body: { json } }, 2),
    enqueue(numbered("stored", 2), { body: { stored: true, bytes: 100_000 } }, 4),
    enqueue(["req_here", "req_there"], { replyTo: "api_other" }, 16),
    queues.enqueue("count", paidCall("req_count"), 16),
    queues.enqueue("chat", withKey("req_key"), 16),
  ]);
  const { taken, letGo } = await work(stores, "chat");
  letGo();
  await eventually(() => taken.length === 9);
  expect(taken.map(callsOf)).toEqual([
    numbered("many", 16),
    ["req_many16"],
    numbered("long", 4),
    ["req_long4"],
    ["req_stored0"],
    ["req_stored1"],
    ["req_key"],
    ["req_here", "req_there"],
    ["req_count"],
  ]);
});

test.for([
  { what: "with an Idempotency-Key", name: "chat", payload: withKey("req_1") },
  { what: "of the image pool", name: "image", payload: paidCall("req_1") },
] as const)("a call $what has a job of its own under its id, however often it is added", async ({ name, payload }) => {
  const stores = await testStores();
  const queues = await open(stores);
  await Promise.all([queues.enqueue(name, payload, 0), queues.enqueue(name, payload, 3)]);
  expect(await queues.backlog(name)).toBe(1);
  expect(await queues.isPending(name, "req_1")).toBe(true);
  const { taken } = await work(stores, name);
  await eventually(() => taken.length === 1);
  expect(payloadsOf(taken[0]?.data)).toEqual([payload]);
  expect(await queues.hasJobsOf("api_test")).toBe(false);
});

test("it is known since when Redis has data: jobs from before may be lost", async () => {
  const stores = await testStores();
  const queues = await open(stores);
  const redis = await connect(stores, "waiting");
  const began = await queues.emptySince();
  await redis.set("{chat}:since", began + 1);
  expect(await queues.emptySince()).toBe(began + 1);
  await redis.set("{chat}:since", 5);
  await loseData(redis);
  expect(await queues.emptySince()).toBeGreaterThanOrEqual(began);
});

test("an account's burst does not delay other accounts: the priority is a class of its calls in flight", async () => {
  const stores = await testStores();
  const queues = await open(stores);
  for (const inFlight of [10_000_000, 64, 63, 16, 15, 4, 3, 1, 0])
    await queues.enqueue("chat", withKey(`req_${inFlight}`), inFlight);
  await queues.enqueue("chat", withKey("req_other"), 0);
  const { taken, letGo } = await work(stores, "chat");
  letGo();
  await eventually(() => taken.length === 10);
  const classes = [
    ["0", "other"],
    ["3", "1"],
    ["15", "4"],
    ["63", "16"],
    ["10000000", "64"],
  ];
  expect(taken.map(({ id }) => id)).toEqual(classes.flat().map((name) => `req_${name}`));
});

test("a waiting job can be removed, one that a worker has cannot, nor one that carries other calls too", async () => {
  const stores = await testStores();
  const queues = await open(stores);
  const active = await queues.enqueue("chat", paidCall("req_active"), 0);
  const waiting = await queues.enqueue("chat", paidCall("req_waiting"), 0);
  const shared = await Promise.all(["req_a", "req_b"].map((id) => queues.enqueue("chat", paidCall(id), 0)));
  const { taken, letGo } = await work(stores, "chat");
  await eventually(() => taken.length === 1);
  expect(await queues.remove(waiting)).toBe(true);
  expect(await queues.remove(active)).toBe(false);
  expect(await Promise.all(shared.map(queues.remove))).toEqual([false, false]);
  expect(await queues.backlog("chat")).toBe(2);
  letGo();
  await eventually(async () => !(await queues.isPending("chat", active.id)));
  expect(await queues.remove(active)).toBe(true);
  await eventually(() => taken.length === 2);
  expect(taken.map(callsOf)).toEqual([["req_active"], ["req_a", "req_b"]]);
});

test("a job is pending while it waits and while it runs, not before and not after", async () => {
  const stores = await testStores();
  const queues = await open(stores);
  expect(await queues.isPending("chat", "req_1")).toBe(false);
  const { id } = await queues.enqueue("chat", paidCall("req_1"), 0);
  expect(await queues.isPending("chat", id)).toBe(true);
  expect(await queues.isPending("embeddings", id)).toBe(false);
  const { taken, letGo } = await work(stores, "chat");
  await eventually(() => taken.length === 1);
  expect(await queues.isPending("chat", id)).toBe(true);
  letGo();
  await eventually(async () => !(await queues.isPending("chat", id)));
});

test("the backlog counts what waits in its own pool, not what runs", async () => {
  const stores = await testStores();
  const queues = await open(stores);
  for (let i = 0; i < 3; i++) await queues.enqueue("embeddings", paidCall(`req_${i}`), i);
  expect([await queues.backlog("embeddings"), await queues.backlog("chat")]).toEqual([3, 0]);
  const { taken } = await work(stores, "embeddings", 2);
  await eventually(() => taken.length === 2);
  expect(await queues.backlog("embeddings")).toBe(1);
});

test("the key by which the chart's pools are scaled has the jobs that wait", async () => {
  const stores = await testStores();
  const queues = await open(stores);
  const template = readFileSync("infra/k8s/chart/templates/keda.yaml", "utf8");
  const listName = /listName: "(.*)"/.exec(template)?.[1] ?? "";
  const keyOf = (pool: string) => listName.replace(/ ?\{\{-? \$queue -?\}\} ?/g, pool);
  await queues.enqueue("embeddings", paidCall("req_1"), 0);
  await queues.enqueue("media", paidCall("req_2"), 0);
  await queues.enqueue("media", paidCall("req_3"), 20);
  const redis = await connect(stores, "waiting");
  const jobs = await Promise.all(["chat", "embeddings", "media"].map((pool) => redis.zcard(keyOf(pool))));
  expect(jobs).toEqual([0, 1, 2]);
});

test("schedules are registered once, by any number of workers, and registering again does not postpone them", async () => {
  const stores = await testStores();
  const [one, other] = await Promise.all([open(stores), open(stores)]);
  await Promise.all([one.schedule(), other.schedule()]);
  const queues = await Promise.all([openQueue(stores, "maintenance"), openQueue(stores, "batches")]);
  const runs = async () => {
    const jobs = await Promise.all(queues.map((queue) => queue.getJobs(["delayed", "waiting", "prioritized"])));
    return jobs
      .flat()
      .map(({ name, id }) => `${name} ${id}`)
      .toSorted();
  };
  const before = await runs();
  const scheduled = Object.fromEntries(
    Object.entries(jobCatalog).flatMap(([name, job]) => ("everyMs" in job ? [[name, job.everyMs] as const] : [])),
  );
  const names = Object.keys(scheduled).toSorted();
  expect(before.map((run) => run.split(" ")[0])).toEqual(names);
  await other.schedule();
  expect(await runs()).toEqual(before);
  const schedulers = (await Promise.all(queues.map((queue) => queue.getJobSchedulers()))).flat();
  expect(Object.fromEntries(schedulers.map(({ name, every }) => [name, every]))).toEqual(scheduled);
  await loseData(await connect(stores, "waiting"));
  await Promise.all([one.keepScheduled(), other.keepScheduled()]);
  expect((await runs()).map((run) => run.split(" ")[0])).toEqual(names);
});

test("while Redis is unavailable adding fails at once, not when it is back, and works again when it is back", async () => {
  const { redis, stores } = await ownServers({ redis: true });
  const queues = await open(stores);
  const before = await queues.enqueue("chat", paidCall("req_1"), 0);
  await redis.stop();
  await expect(queues.enqueue("chat", paidCall("req_2"), 0)).rejects.toThrow(/writeable|closed|retries/);
  await redis.start();
  const after = await eventually(() => queues.enqueue("chat", paidCall("req_3"), 0).catch(() => undefined));
  for (const { id } of [before, after]) expect(await queues.isPending("chat", id)).toBe(true);
});

test("an account with thousands of receivers of webhooks goes behind one with a few", async () => {
  const stores = await testStores();
  const queues = await open(stores);
  const receivers = (account: string, count: number) =>
    Array.from({ length: count }, (_, n) => ({ account, receiver: `wr_${account}_${n}` }));
  await queues.enqueueReceivers(receivers("many", 1_000));
  await queues.enqueueReceivers(receivers("few", 4));
  await queues.enqueueReceivers(receivers("few", 4));
  const { taken, letGo } = await work(stores, "webhooks");
  letGo();
  await eventually(() => taken.length === 1_004);
  const accounts = taken.map(({ data }) => (data as { account: string }).account);
  // As many of the first account have the same priorities.
  expect(accounts.lastIndexOf("few")).toBe(7);
});
