import { expect, onTestFinished, test } from "vitest";
import { createQueues } from "#jobs";
import { shardOf } from "../../shared/jobs/shards.ts";
import { connect, log, paidCall } from "../support/jobs-setup.ts";
import { scrape } from "../support/metrics.ts";
import { type Stores, testStores } from "../support/servers.ts";
import { eventually, startService } from "../support/service.ts";

const accounts = Array.from({ length: 40 }, (_, i) => `acct_${i}`);

async function open(stores: Stores, chatShards: number) {
  const queues = createQueues({ redis: await connect(stores, "fail-fast"), log, chatShards });
  onTestFinished(() => queues.close());
  return queues;
}

test("an account's calls are in one of the queues, and the pool's numbers are those of all", async () => {
  const stores = await testStores();
  const [api, worker] = [await open(stores, 4), await open(stores, 1)];
  const jobs = [];
  for (const account of accounts) {
    // Other processes find it by its id.
    const call = paidCall(`req_${account}`, { account, idempotencyKeyId: "idem_1" });
    jobs.push(await api.enqueue("chat", call, 0));
  }
  const names = ["chat", "chat-1", "chat-2", "chat-3"];
  expect(jobs.map(({ queue }) => queue)).toEqual(accounts.map((account) => shardOf(account, 4)));
  expect([...new Set(jobs.map(({ queue }) => queue))].toSorted()).toEqual(names);
  expect(await api.backlog("chat")).toBe(accounts.length);

  // A process with another number reads the announced shards.
  expect(worker.namesOf("chat")).toEqual(["chat"]);
  await api.announceShards();
  await worker.readShards();
  expect(worker.namesOf("chat")).toEqual(names);
  expect(await worker.backlog("chat")).toBe(accounts.length);
  expect(await worker.oldestWaiting("chat")).toBe(await api.oldestIn(jobs[0]?.queue ?? ""));
  const isPending = () => Promise.all(accounts.map((account) => worker.isPending("chat", `req_${account}`)));
  expect(new Set(await isPending())).toEqual(new Set([true]));
  for (const job of jobs) expect(await api.remove(job)).toBe(true);
  expect(new Set(await isPending())).toEqual(new Set([false]));

  // An instance with fewer changes nothing.
  await (await open(stores, 2)).announceShards();
  const later = await open(stores, 1);
  await later.readShards();
  expect(later.namesOf("chat")).toEqual(names);
});

test("workers serve the shards of every API instance, whatever their own number is", async () => {
  const stores = await testStores();
  const before = await startService(stores, { env: { WORKER_CONCURRENCY_CHAT: "2" } });
  const after = await startService(stores, { env: { CHAT_SHARDS: "3", WORKER_POOLS: "maintenance" } });
  await eventually(async () => (await fetch(`${after.baseUrl}/readyz`)).ok);
  const ask = { model: "local/chat", messages: [{ role: "user", content: "Hello!" }] };
  const customers = await Promise.all(Array.from({ length: 9 }, () => before.account("1.00")));
  const statuses = [before, after].flatMap(({ baseUrl }) =>
    customers.flatMap(({ key }) =>
      [1, 2, 3].map(async () => {
        const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
        const init = { method: "POST", headers, body: JSON.stringify(ask) };
        return (await fetch(`${baseUrl}/v1/chat/completions`, init)).status;
      }),
    ),
  );
  expect(new Set(await Promise.all(statuses))).toEqual(new Set([200]));
  expect(await before.settled()).toMatchObject({ ok: true });
  // The metric is read once a second.
  const waiting = async () => (await scrape(after.metrics.api)).value("inference_pool_waiting", { pool: "chat" });
  await expect.poll(waiting).toBe(0);
});
