import { type Job, Queue, Worker } from "bullmq";
import { expect, onTestFinished, test } from "vitest";
import { createQueues, toPaidCall } from "#jobs";
import { connect, log, paidCall } from "../support/jobs-setup.ts";
import { ownServers, type Stores, testStores } from "../support/servers.ts";
import { eventually } from "../support/service.ts";

async function open(stores: Stores) {
  const queues = createQueues({ redis: await connect(stores, "fail-fast"), log });
  onTestFinished(() => queues.close());
  return queues;
}

/** A worker that keeps each job until it is let go. */
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
    { connection: await connect(stores, "blocking"), concurrency, skipVersionCheck: true },
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

test("a job is delivered as it was added, under the request's id", async () => {
  const stores = await testStores();
  const queues = await open(stores);
  const payload = paidCall("req_1", { body: { json: '{"model": "local/chat"}' } });
  await queues.enqueue("chat", payload, 0);
  const { taken } = await work(stores, "chat");
  await eventually(() => taken.length === 1);
  expect(taken[0]).toMatchObject({ id: "req_1", name: "chat", attemptsStarted: 1 });
  expect(toPaidCall(taken[0]?.data)).toEqual(payload);
});

test("a job that is added twice is one job", async () => {
  const queues = await open(await testStores());
  await queues.enqueue("chat", paidCall("req_1"), 0);
  await queues.enqueue("chat", paidCall("req_1"), 3);
  expect(await queues.backlog("chat")).toBe(1);
});

test("an account's burst does not delay other accounts", async () => {
  const stores = await testStores();
  const queues = await open(stores);
  for (let i = 0; i < 4; i++) await queues.enqueue("chat", paidCall(`req_burst${i}`), i);
  await queues.enqueue("chat", paidCall("req_other"), 0);
  await queues.enqueue("chat", paidCall("req_flood"), 10_000_000);
  const { taken, letGo } = await work(stores, "chat");
  letGo();
  await eventually(() => taken.length === 6);
  expect(taken.map(({ id }) => id)).toEqual([
    "req_burst0",
    "req_other",
    "req_burst1",
    "req_burst2",
    "req_burst3",
    "req_flood",
  ]);
});

test("a waiting job can be removed, one that a worker has cannot", async () => {
  const stores = await testStores();
  const queues = await open(stores);
  await queues.enqueue("chat", paidCall("req_active"), 0);
  await queues.enqueue("chat", paidCall("req_waiting"), 0);
  const { taken, letGo } = await work(stores, "chat");
  await eventually(() => taken.length === 1);
  expect(await queues.remove("chat", "req_waiting")).toBe(true);
  expect(await queues.remove("chat", "req_active")).toBe(false);
  expect(await queues.backlog("chat")).toBe(0);
  letGo();
  await eventually(async () => !(await queues.isPending("chat", "req_active")));
  expect(await queues.remove("chat", "req_active")).toBe(true);
  expect(await queues.remove("chat", "req_never")).toBe(true);
  expect(taken.map(({ id }) => id)).toEqual(["req_active"]);
});

test("a job is pending while it waits and while it runs, not before and not after", async () => {
  const stores = await testStores();
  const queues = await open(stores);
  expect(await queues.isPending("chat", "req_1")).toBe(false);
  await queues.enqueue("chat", paidCall("req_1"), 0);
  expect(await queues.isPending("chat", "req_1")).toBe(true);
  expect(await queues.isPending("embeddings", "req_1")).toBe(false);
  const { taken, letGo } = await work(stores, "chat");
  await eventually(() => taken.length === 1);
  expect(await queues.isPending("chat", "req_1")).toBe(true);
  letGo();
  await eventually(async () => !(await queues.isPending("chat", "req_1")));
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

test("schedules are registered once, by any number of workers, and registering again does not postpone them", async () => {
  const stores = await testStores();
  const [one, other] = await Promise.all([open(stores), open(stores)]);
  await Promise.all([one.schedule(), other.schedule()]);
  const queue = new Queue("maintenance", { connection: await connect(stores, "waiting"), skipVersionCheck: true });
  onTestFinished(() => queue.close());
  const runs = async () => {
    const jobs = await queue.getJobs(["delayed", "waiting", "prioritized"]);
    return jobs.map(({ name, id }) => `${name} ${id}`).toSorted();
  };
  const before = await runs();
  const scheduled = {
    "apply-late-costs": 300_000,
    "checkpoint-ledger": 30_000,
    "execute-buybacks": 30_000,
    "expire-bodies": 3_600_000,
    "expire-files": 60_000,
    "gather-buybacks": 60_000,
    "reconcile-payments": 5_000,
    "sweep-holds": 15_000,
    "tidy-payments": 3_600_000,
  };
  expect(before.map((run) => run.split(" ")[0])).toEqual(Object.keys(scheduled));
  await other.schedule();
  expect(await runs()).toEqual(before);
  const schedulers = await queue.getJobSchedulers();
  expect(Object.fromEntries(schedulers.map(({ name, every }) => [name, every]))).toEqual(scheduled);
});

test("while Redis is unavailable adding fails at once, not when it is back, and works again when it is back", async () => {
  const { redis, stores } = await ownServers({ redis: true });
  const queues = await open(stores);
  await queues.enqueue("chat", paidCall("req_1"), 0);
  await redis.stop();
  await expect(queues.enqueue("chat", paidCall("req_2"), 0)).rejects.toThrow(/writeable|closed|retries/);
  await redis.start();
  await eventually(() =>
    queues.enqueue("chat", paidCall("req_3"), 0).then(
      () => true,
      () => false,
    ),
  );
  expect(await queues.isPending("chat", "req_1")).toBe(true);
  expect(await queues.isPending("chat", "req_3")).toBe(true);
});
