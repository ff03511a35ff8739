import { expect, onTestFinished, test } from "vitest";
import { gathering } from "../support/chaos-generation-setup.ts";
import {
  ask,
  availableUsd,
  balanceAfter,
  callCounts,
  callsOf,
  fullCostUsd,
  groupsIn,
  heldWire,
  never,
  openCollection,
  outcomeOf,
  path,
  read,
  redisOf,
  startProcesses,
  startProvider,
} from "../support/chaos-setup.ts";
import { startMockOpenai } from "../support/mock-openai.ts";
import { startMockCohere } from "../support/mock-rerank.ts";
import { testStores } from "../support/servers.ts";
import { eventually, shortTimeouts, spawnApi, spawnWorker } from "../support/service.ts";

test("a worker killed before and during output: one clear error, or audio that breaks off; nothing charged, the provider never asked again", async () => {
  const stores = await testStores({ oneServer: true });
  const { provider, env } = await startProvider(shortTimeouts);
  const { client, worker } = await startProcesses(stores, env);
  const customer = await client.account("1.00");
  const listener = await client.account("1.00");

  const audio = [Buffer.alloc(300, 1), Buffer.alloc(300, 2)];
  provider.respond(
    { beforeHeaders: never },
    { beforeEvent: { 4: never } },
    { headers: { "content-type": "audio/mpeg" }, events: audio, beforeEvent: { 1: never } },
  );
  const json = outcomeOf(customer.post(path, ask()));
  await provider.request(0);
  const stream = read(await customer.post(path, ask({ stream: true })));
  await stream.sees(4);
  const spoken = await listener.post("/v1/audio/speech", { model: "mock/speech", input: "Hello", voice: "alto" });
  const reader = (spoken.body as ReadableStream<Uint8Array>).getReader();
  expect((await reader.read()).value).toHaveLength(300);
  await spawnWorker(stores, env);

  worker.kill("SIGKILL");
  const answer = await json;
  expect(answer).toMatchObject({ status: 503, code: "no_capacity", retryAfter: "1" });
  expect(await stream.ended).toBe("closed");

  expect(stream.events).toHaveLength(5);
  expect(stream.events.at(-1)?.error).toMatchObject({ type: "server_error", code: "no_capacity" });
  expect(stream.done()).toBe(false);
  await expect(reader.read()).rejects.toThrow("terminated");

  await client.settled();
  const calls = await callsOf(client, customer);
  expect(calls.map(({ id }) => id)).toContain(answer.body.request_id);
  expect(calls.map(({ id }) => id)).toContain(stream.events.at(-1)?.request_id);
  expect(calls).toHaveLength(2);
  const heard = await callsOf(client, listener);
  expect(heard).toHaveLength(1);
  for (const { amount_usd, request } of [...calls, ...heard]) {
    expect(amount_usd).toBe("0.00");
    expect(request).toMatchObject({ status: "failed", error: "no_capacity", attempts: { length: 0 } });
  }
  for (const each of [customer, listener]) expect(await availableUsd(client, each)).toBe("1.00");
  expect(provider.requests).toHaveLength(3);
});

test("a worker killed during a rerank and a moderation: an error each, nothing charged, no provider asked again", async () => {
  const stores = await testStores({ oneServer: true });
  const [cohere, openai] = [await startMockCohere(), await startMockOpenai()];
  onTestFinished(() => Promise.all([cohere.close(), openai.close()]).then(() => {}));
  const env = {
    COHERE_API_KEY: "co-operator",
    COHERE_BASE_URL: cohere.url,
    OPENAI_API_KEY: "sk-operator",
    OPENAI_BASE_URL: openai.url,
  };
  const { client, worker } = await startProcesses(stores, env);
  const customer = await client.account("1.00");

  cohere.always({ beforeHeaders: never });
  openai.always({ beforeHeaders: never });
  const rerank = { model: "cohere/rerank-v4.0-pro", query: "a", documents: ["a", "b"] };
  const moderation = { model: "openai/omni-moderation-latest", input: "a" };
  const calls = [customer.post("/v1/rerank", rerank), customer.post("/v1/moderations", moderation)].map(outcomeOf);
  await Promise.all([cohere.request(0), openai.request(0)]);
  await spawnWorker(stores, env);
  worker.kill("SIGKILL");
  await worker.exited;
  for (const call of calls) expect(await call).toMatchObject({ status: 503, code: "no_capacity", retryAfter: "1" });
  await client.settled();
  expect(await availableUsd(client, customer)).toBe("1.00");
  expect([cohere.requests.length, openai.requests.length]).toEqual([1, 1]);
});

test("a worker killed between capture and answer: the caller gets an error and the cost back", async () => {
  const stores = await testStores({ oneServer: true });
  const { provider, env } = await startProvider(shortTimeouts);
  const wire = await heldWire(stores.REDIS_URL);
  const workerStores = { ...stores, REDIS_URL: wire.address };
  const { client, worker } = await startProcesses(stores, env, { workerStores });
  const customer = await client.account("1.00");

  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeHeaders: gate.promise }, { beforeEvent: { 4: gate.promise } });
  const json = outcomeOf(customer.post(path, ask()));
  await provider.request(0);
  const stream = read(await customer.post(path, ask({ stream: true })));
  await stream.sees(4);
  wire.hold();
  gate.resolve();
  const captured = await eventually(async () => {
    const calls = await callsOf(client, customer);
    return calls.length === 2 && calls;
  });
  for (const { amount_usd, request } of captured) {
    expect(amount_usd).toBe(`-${fullCostUsd}`);
    expect(request).toMatchObject({ status: "succeeded", attempts: { length: 1 } });
  }
  worker.kill("SIGKILL");
  await worker.exited;
  await spawnWorker(stores, env);

  const answer = await json;
  expect(answer).toMatchObject({ status: 503, code: "no_capacity", retryAfter: "1" });
  expect(await stream.ended).toBe("closed");
  expect(stream.events.at(-1)?.error).toMatchObject({ code: "no_capacity" });
  expect(stream.done()).toBe(false);
  await client.settled();
  expect(await callsOf(client, customer)).toHaveLength(2);
  const refunds = await callsOf(client, customer, "refund");
  expect(refunds.map(({ id }) => id).toSorted()).toEqual(captured.map(({ id }) => `refund:${id}`).toSorted());
  for (const { amount_usd } of refunds) expect(amount_usd).toBe(fullCostUsd);
  expect(await availableUsd(client, customer)).toBe("1.00");
  expect(provider.requests).toHaveLength(2);
});

test.for([
  { what: "a worker killed", withApi: false, others: "503" },
  { what: "a worker, and some seconds later its API, killed", withApi: true, others: "lost" },
])(
  "$what while a group is half done: its answers stay charged, once; the other calls cost nothing",
  async ({ withApi, others }) => {
    const stores = await testStores({ oneServer: true });
    const { provider, env } = await startProvider(shortTimeouts);
    const { apiStores, gather } = await gathering(stores);
    const { api, worker, client } = await startProcesses(stores, env, { apiStores });
    const customer = await client.account("1.00");
    const redis = redisOf(stores);
    const instances = await openCollection<{ open: readonly object[] }>(stores, "apiInstances");

    const gates = Array.from({ length: 6 }, () => Promise.withResolvers<void>());
    provider.respond(...gates.map(({ promise }) => ({ beforeHeaders: promise })));
    const prompts = gates.map((_, index) => `call ${index}`);
    const calls = await gather(client, 6, (index) =>
      outcomeOf(customer.post(path, ask({ messages: [{ role: "user", content: prompts[index] }] }))),
    );
    const outcomes: string[] = [];
    const ended = calls.map(async (call) => {
      const outcome = await call.then(({ status }) => String(status)).catch(() => "lost");
      outcomes.push(outcome);
    });
    await provider.request(5);
    expect(await callCounts(redis, "chat")).toEqual({ waiting: 0, active: 6 });
    // On a busy machine some arrive in a later turn. One call of the largest group stays unanswered, and one of the smallest.
    const groups = (await groupsIn(redis, "chat", "active")).toSorted((a, b) => b.length - a.length);
    expect(groups[0]?.length).toBeGreaterThan(1);
    const ordered = groups.flat().map((payload) => JSON.stringify(payload));
    const answered = prompts.filter((prompt) => ordered.slice(1, -1).some((payload) => payload.includes(prompt)));
    for (const [index, { body }] of provider.requests.entries())
      if (answered.some((prompt) => JSON.stringify(body).includes(prompt))) gates[index]?.resolve();
    await eventually(() => outcomes.length === 4);

    if (withApi) {
      // The queue has only unfinished jobs by then, and every delivery is recorded.
      await eventually(async () => (await callCounts(redis, "chat")).active === 2);
      await eventually(async () => (await instances.findOne({}))?.open.length === 2);
      api.kill("SIGKILL");
    }
    worker.kill("SIGKILL");
    await worker.exited;
    await spawnWorker(stores, env);
    const later = withApi ? (await spawnApi(stores, env)).client : client;
    await Promise.all(ended);
    expect(outcomes).toEqual([...Array(4).fill("200"), others, others]);
    await eventually(async () => (await callCounts(redis, "chat")).active === 0);
    await later.settled();
    const amounts = (await callsOf(later, customer)).map(({ amount_usd }) => amount_usd);
    expect(amounts.toSorted()).toEqual([...Array(4).fill(`-${fullCostUsd}`), "0.00", "0.00"]);
    expect(await callsOf(later, customer, "refund")).toEqual([]);
    expect(await availableUsd(later, customer)).toBe(balanceAfter(4));
    expect(provider.requests).toHaveLength(6);
  },
);
