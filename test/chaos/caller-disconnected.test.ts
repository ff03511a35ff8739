import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { formatUsd } from "../../shared/money/index.ts";
import { gathering } from "../support/chaos-generation-setup.ts";
import {
  ask,
  availableUsd,
  balanceAfter,
  callCounts,
  callsOf,
  fullCostUsd,
  lost,
  never,
  onlyCall,
  path,
  read,
  redisOf,
  startProcesses,
  startProvider,
} from "../support/chaos-setup.ts";
import { keysOf } from "../support/jobs-setup.ts";
import { mockText } from "../support/mock-openai.ts";
import { testStores } from "../support/servers.ts";
import { type Client, type Customer, eventually, shortApiTimeout } from "../support/service.ts";

async function service(worker: Record<string, string> = {}) {
  const stores = await testStores();
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client } = await startProcesses(stores, env, { worker });
  return { stores, provider, client };
}

/** An ended call that still held its slot would make the service refuse this one. */
async function hasFreeSlot(client: Client, customer: Customer) {
  await eventually(async () => {
    const response = await customer.post(path, ask());
    await response.text();
    return response.status === 200;
  });
  await client.settled();
}

test("the caller disconnects while the job waits: it never starts and costs nothing", async () => {
  const { stores, provider, client } = await service({ WORKER_CONCURRENCY_CHAT: "1" });
  const [busy, customer] = await Promise.all([
    client.account("1.00"),
    client.account("1.00", { limits: { concurrent_requests: 1 } }),
  ]);
  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeHeaders: gate.promise });
  const blocking = busy.post(path, ask());
  await provider.request(0);

  const leaving = new AbortController();
  const disconnected = lost(customer.post(path, ask(), { signal: leaving.signal }));
  const redis = redisOf(stores);
  await eventually(async () => (await callCounts(redis, "chat")).waiting === 1);
  leaving.abort();
  expect(await disconnected).toBe(true);
  const call = await eventually(async () => (await callsOf(client, customer))[0]);
  expect(call).toMatchObject({ amount_usd: "0.00", request: { status: "cancelled", attempts: { length: 0 } } });
  expect((await callCounts(redis, "chat")).waiting).toBe(0);
  // The capture is settled on the balance after it is in the ledger.
  await eventually(async () => (await availableUsd(client, customer)) === "1.00");

  gate.resolve();
  expect((await blocking).status).toBe(200);
  expect(provider.requests).toHaveLength(1);
  await hasFreeSlot(client, customer);
});

test("callers disconnect while their group waits: they never reach the provider and cost nothing, the others are answered", async () => {
  const stores = await testStores();
  const { provider, env } = await startProvider(shortApiTimeout);
  const { apiStores, gather } = await gathering(stores);
  const { client } = await startProcesses(stores, env, { apiStores, worker: { WORKER_CONCURRENCY_CHAT: "1" } });
  const [busy, customer] = await Promise.all([client.account("1.00"), client.account("1.00")]);
  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeHeaders: gate.promise });
  const blocking = busy.post(path, ask());
  await provider.request(0);

  const leaving = new AbortController();
  const isLeaving = (index: number) => index % 2 === 1;
  const calls = await gather(client, 6, (index) =>
    customer.post(path, ask(), isLeaving(index) ? { signal: leaving.signal } : {}).then(
      ({ status }) => status,
      () => "disconnected",
    ),
  );
  const redis = redisOf(stores);
  await eventually(async () => (await callCounts(redis, "chat")).waiting === 6);
  expect(await redis.zcard("{chat}:chat:prioritized")).toBeLessThan(6);
  leaving.abort();
  await eventually(async () => {
    const [marks, { waiting }] = await Promise.all([keysOf(redis, "cancelled:*"), callCounts(redis, "chat")]);
    // Waiting calls with an individual job are removed from the queue.
    return marks.length + (6 - waiting) === 3;
  });
  gate.resolve();
  expect((await blocking).status).toBe(200);
  expect(await Promise.all(calls)).toEqual([200, "disconnected", 200, "disconnected", 200, "disconnected"]);
  await client.settled();
  const amounts = (await callsOf(client, customer)).map(({ amount_usd }) => amount_usd);
  expect(amounts.toSorted()).toEqual([...Array(3).fill(`-${fullCostUsd}`), ...Array(3).fill("0.00")]);
  expect(await availableUsd(client, customer)).toBe(balanceAfter(3));
  expect(provider.requests).toHaveLength(4);
});

test("the caller disconnects while a JSON call runs: the answer is charged, then the slot is free", async () => {
  const { provider, client } = await service();
  const customer = await client.account("1.00", { limits: { concurrent_requests: 1 } });
  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeHeaders: gate.promise });
  const leaving = new AbortController();
  const disconnected = lost(customer.post(path, ask(), { signal: leaving.signal }));
  const request = await provider.request(0);
  leaving.abort();
  expect(await disconnected).toBe(true);
  gate.resolve();
  await request.closed;
  expect(request.aborted).toBe(false);
  expect(await onlyCall(client, customer)).toMatchObject({
    amount_usd: `-${fullCostUsd}`,
    request: { status: "succeeded", attempts: { length: 1 } },
  });
  await hasFreeSlot(client, customer);
  expect(provider.requests).toHaveLength(2);
});

test("the caller disconnects during a stream: aborted at the provider, charged for the delivered part, the slot free", async () => {
  const { provider, client } = await service();
  const customer = await client.account("1.00", { limits: { concurrent_requests: 1 } });
  provider.respond({ beforeEvent: { 5: never } });
  const leaving = new AbortController();
  const stream = read(await customer.post(path, ask({ stream: true }), { signal: leaving.signal }));
  await stream.sees(5);
  const request = await provider.request(0);
  leaving.abort();
  await request.closed;
  expect(request.aborted).toBe(true);
  const { amount_usd, request: record } = await onlyCall(client, customer);
  expect(record).toMatchObject({ status: "cancelled", attempts: { length: 1 }, estimated: true });
  // "Hello there, how may" is 20 bytes, which is 5 tokens.
  expect(stream.text()).toBe(mockText.slice(0, 20));
  expect(record.usage).toMatchObject({ output: 5 });
  // The input is estimated by the tokenizer, or from its bytes if the tokenizer is slow.
  const costNanoUsd = 1_000n * BigInt((record.usage["input"] ?? 0) + 2 * 5);
  expect(amount_usd).toBe(formatUsd(-costNanoUsd));
  expect(await availableUsd(client, customer)).toBe(formatUsd(1_000_000_000n - costNanoUsd));
  await hasFreeSlot(client, customer);
});

test("callers who disconnect at any moment of their admission: no hold remains, and calls that ran are charged once", async () => {
  const { provider, client } = await service();
  const customer = await client.account("1.00");
  const { hostname, port } = new URL(client.baseUrl);
  const body = JSON.stringify(ask());
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: ${hostname}`,
    `authorization: Bearer ${customer.key}`,
    `content-length: ${body.length}`,
  ].join("\r\n");
  const patience = Array.from({ length: 40 }, (_, i) => i);
  await Promise.all(
    patience.map(async (turns) => {
      const socket = connect(Number(port), hostname);
      await once(socket, "connect");
      socket.write(`${head}\r\n\r\n${body}`);
      // One turn of this event loop takes some hundred microseconds of the API's time, so the turns together cover
      // every step.
      for (let turn = 0; turn < turns * 4; turn++) await new Promise((resolve) => setImmediate(resolve));
      socket.destroy();
    }),
  );
  // Every admitted call is settled: charged in full if it reached a provider, else at zero.
  const amounts = await eventually(async () => {
    await client.settled();
    const captured = (await callsOf(client, customer)).map(({ amount_usd }) => amount_usd);
    const charged = captured.filter((amount) => amount !== "0.00").length;
    const isPaid = (await availableUsd(client, customer)) === balanceAfter(charged);
    return isPaid && charged === provider.requests.length && captured;
  });
  expect(new Set(["0.00", `-${fullCostUsd}`]).isSupersetOf(new Set(amounts))).toBe(true);
});
