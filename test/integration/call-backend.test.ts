import { createRedisBackend, Queue, Worker } from "bullmq";
import { expect, onTestFinished, test } from "vitest";
import { backendOf } from "#jobs";
import { connect } from "../support/jobs-setup.ts";
import { testStores } from "../support/servers.ts";
import { eventually } from "../support/service.ts";

const prefix = "{chat}";

/** A queue and a worker of the pool, each with BullMQ's scripts or with ours. */
async function open(adds: string, takes: string) {
  const stores = await testStores();
  const redis = await connect(stores, "blocking");
  const options = { connection: redis, prefix, skipVersionCheck: true };
  const backend = (scripts: string) => (scripts === "ours" ? backendOf("chat", redis) : createRedisBackend);
  const queue = new Queue("chat", options, backend(adds));
  // Nobody renews the locks of these jobs.
  const locks = { lockDuration: 600_000, stalledInterval: 50 };
  const worker = new Worker("chat", null, { ...options, ...locks }, backend(takes));
  worker.on("error", () => {});
  onTestFinished(async () => {
    await worker.close();
    await queue.close();
  });
  const add = (id: string, priority: number) =>
    queue.add("chat", { of: id }, { jobId: id, priority, removeOnComplete: true, timestamp: 1 });
  const take = (token: string) => worker.getNextJob(token, { block: false });
  /** The keys of the queue that name a job, or list any. */
  const left = async () => {
    const keys = await redis.keys(`${prefix}:*`);
    return keys.filter((key) => !/:(meta|pc|id|events|marker|stalled-check)$/.test(key));
  };
  return { redis, queue, worker, add, take, left };
}

test.each([
  ["ours", "BullMQ's"],
  ["BullMQ's", "ours"],
  ["ours", "ours"],
  ["BullMQ's", "BullMQ's"],
])(
  "jobs added by %s scripts and taken by %s are in order, can be handed over, and leave nothing",
  async (adds, takes) => {
    const { redis, add, take, left } = await open(adds, takes);
    for (const [id, priority] of [
      ["low", 3],
      ["high", 1],
      ["second", 1],
      ["high", 1],
    ] as const)
      await add(id, priority);
    // Only BullMQ's scripts write events.
    const events = () => redis.xlen(`${prefix}:chat:events`);
    const ofAdding = await events();
    expect(ofAdding > 0).toBe(adds !== "ours");
    const high = await take("token_1");
    expect((await events()) > ofAdding).toBe(takes !== "ours");
    expect(high).toMatchObject({
      id: "high",
      name: "chat",
      data: { of: "high" },
      opts: { removeOnComplete: true, priority: 1 },
      timestamp: 1,
      priority: 1,
      attemptsStarted: 1,
    });
    expect(await redis.get(`${prefix}:chat:high:lock`)).toBe("token_1");
    const second = await take("token_2");
    expect(second?.id).toBe("second");
    // Another worker is woken while a job waits.
    expect(await redis.zscore(`${prefix}:chat:marker`, "0")).toBe("0");
    await second?.moveToCompleted(undefined, "token_2", false);

    await high?.moveToDelayed(Date.now(), "token_1");
    const again = [await take("token_3"), await take("token_4"), await take("token_5")];
    expect(again.map((job) => [job?.id, job?.attemptsStarted])).toEqual([
      ["high", 2],
      ["low", 1],
      [undefined, undefined],
    ]);
    await expect(again[0]?.moveToCompleted(undefined, "token_1", false)).rejects.toThrow(/lock/i);
    // Those that end in one turn share a command.
    await Promise.all([
      again[0]?.moveToCompleted(undefined, "token_3", false),
      again[1]?.moveToCompleted(undefined, "token_4", false),
    ]);
    expect(await left()).toEqual([]);
  },
);

test("a job whose worker died is taken again, before all that wait, and the dead one cannot end it", async () => {
  const { redis, worker, add, take, left } = await open("ours", "ours");
  await add("job_stalled", 5);
  const first = await take("token_1");
  await redis.del(`${prefix}:chat:job_stalled:lock`);
  await add("job_waiting", 1);
  void worker.startStalledCheckTimer();
  await eventually(async () => (await redis.llen(`${prefix}:chat:wait`)) === 1);
  const again = [await take("token_2"), await take("token_3")];
  expect(again.map((job) => [job?.id, job?.attemptsStarted])).toEqual([
    ["job_stalled", 2],
    ["job_waiting", 1],
  ]);
  await expect(first?.moveToCompleted(undefined, "token_1", false)).rejects.toThrow("The lock of the job is lost.");
  await again[0]?.moveToCompleted(undefined, "token_2", false);
  await again[1]?.moveToCompleted(undefined, "token_3", false);
  expect(await left()).toEqual([]);
});

test("a paused queue hands out nothing", async () => {
  const { queue, add, take } = await open("ours", "ours");
  await add("job_waiting", 1);
  await queue.pause();
  expect(await take("token_1")).toBeUndefined();
  await queue.resume();
  expect((await take("token_2"))?.id).toBe("job_waiting");
});
