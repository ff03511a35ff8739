import { expect, test } from "vitest";
import {
  ask,
  availableUsd,
  balanceAfter,
  callCounts,
  callsOf,
  lost,
  never,
  pacedMs,
  path,
  read,
  redisOf,
  startProcesses,
  startProvider,
} from "../support/chaos-setup.ts";
import { keysOf } from "../support/jobs-setup.ts";
import { mockText } from "../support/mock-openai.ts";
import { testStores } from "../support/servers.ts";
import { eventually, spawnApi } from "../support/service.ts";

test("an API killed mid-call: its running work is aborted at the provider, its waiting work never starts", async () => {
  const stores = await testStores();
  const { provider, env } = await startProvider();
  const { api: doomed } = await startProcesses(stores, env, { worker: { WORKER_CONCURRENCY_CHAT: "2" } });
  const customer = await doomed.client.account("1.00");

  provider.respond({ beforeHeaders: never }, { beforeEvent: { 4: never }, usage: false });
  const json = lost(customer.post(path, ask()));
  await provider.request(0);
  const stream = read(await customer.post(path, ask({ stream: true })));
  await stream.sees(4);
  const waiting = lost(customer.post(path, ask()));
  const redis = redisOf(stores);
  await eventually(async () => (await callCounts(redis, "chat")).waiting === 1);

  doomed.kill("SIGKILL");
  await doomed.exited;
  expect(await Promise.all([json, waiting, stream.ended])).toEqual([true, true, "broken"]);
  // The lease is 30 s at most. Nobody waits for that here.
  const [lease] = (await keysOf(redis, "reply:*")) as [string];
  expect(await redis.ttl(lease)).toBeLessThanOrEqual(30);
  const { client } = await spawnApi(stores, env);
  await redis.del(lease);
  const cut = Promise.all(provider.requests.map(({ closed }) => closed));
  expect(await pacedMs(client, cut)).toBeLessThan(3_000);
  expect(provider.requests.map(({ aborted }) => aborted)).toEqual([true, true]);

  await client.settled();
  const calls = await callsOf(client, customer);
  expect(calls).toHaveLength(3);
  for (const { request } of calls) expect(request.status).toBe("cancelled");
  const charged = calls.filter(({ amount_usd }) => amount_usd !== "0.00");
  // Four events were written in frames: "Hello there, how" are 16 bytes: 4 tokens.
  expect(charged).toHaveLength(1);
  expect(charged[0]?.request).toMatchObject({ attempts: { length: 1 }, estimated: true, usage: { output: 4 } });
  expect(stream.text()).toBe(mockText.slice(0, 16));
  const { input = 0, output = 0 } = charged[0]?.request.usage ?? {};
  expect(await availableUsd(client, customer)).toBe(`0.9999${String(100 - input - 2 * output).padStart(2, "0")}`);
  expect(provider.requests).toHaveLength(2);
});

test("a JSON answer whose API instance died costs nothing; one that was taken is paid, after a restart too", async () => {
  const stores = await testStores();
  const { provider, env } = await startProvider();
  const { api: doomed } = await startProcesses(stores, env);
  const redis = redisOf(stores);
  const [lease] = (await keysOf(redis, "reply:*")) as [string];
  const { client, ...stopping } = await spawnApi(stores, env);
  const customer = await doomed.client.account("1.00");
  const gate = Promise.withResolvers<undefined>();
  provider.respond({ beforeHeaders: gate.promise });
  const disconnected = lost(customer.post(path, ask()));
  await provider.request(0);
  doomed.kill("SIGKILL");
  await doomed.exited;
  expect(await disconnected).toBe(true);
  await redis.del(lease);
  gate.resolve(undefined);
  await eventually(async () => (await callsOf(client, customer)).length === 1);
  // Decided first, given back when nobody is found to take the answer.
  await eventually(async () => (await availableUsd(client, customer)) === "1.00");

  const taken = await fetch(`${client.baseUrl}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${customer.key}` },
    body: JSON.stringify(ask()),
  });
  expect(taken.status).toBe(200);
  stopping.kill("SIGTERM");
  await stopping.exited;
  const { client: next } = await spawnApi(stores, env);
  await next.settled();
  expect(await availableUsd(next, customer)).toBe(balanceAfter(1));
  expect(provider.requests).toHaveLength(2);
});
