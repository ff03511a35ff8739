import { expect, test } from "vitest";
import { askImage, askVideo, imagesPath, mediaPath } from "../support/chaos-generation-setup.ts";
import {
  ask,
  availableUsd,
  balanceAfter,
  callsOf,
  cutWire,
  heldWire,
  isWhole,
  never,
  onlyCall,
  outcomeOf,
  path,
  read,
  restartEmpty,
  startProcesses,
  startProvider,
  worksAgain,
} from "../support/chaos-setup.ts";
import { ownServers, testStores } from "../support/servers.ts";
import { eventually, shortApiTimeout } from "../support/service.ts";

test("connections that break while processes start: every pool takes jobs, and every call is answered", async () => {
  const stores = await testStores({ oneServer: true });
  const { provider, env } = await startProvider(shortApiTimeout);
  for (let start = 0; start < 3; start++) {
    const cutStores = { ...stores, REDIS_URL: await cutWire(stores.REDIS_URL) };
    const { client, api, worker } = await startProcesses(cutStores, { ...env, CALL_TIMEOUT_MS: "20000" });
    const customer = await client.account("10.00");
    const calls = [
      [path, ask()],
      [imagesPath, askImage({ response_format: "b64_json" })],
      [mediaPath, askVideo()],
    ] as const;
    const answers = await Promise.all(calls.map(([route, body]) => customer.post(route, body)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    for (const started of [api, worker]) {
      started.kill("SIGTERM");
      expect(await started.exited).toBe(0);
    }
  }
  expect(provider.requests.length).toBeGreaterThan(0);
});

test("Redis stopped and started: new calls get 503 at once, calls in flight come to their end", async () => {
  const { redis, stores } = await ownServers({ redis: true });
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client } = await startProcesses(stores, env);
  const customer = await client.account("1.00");

  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeEvent: { 4: gate.promise } }, { beforeHeaders: gate.promise });
  const stream = read(await customer.post(path, ask({ stream: true })));
  const json = outcomeOf(customer.post(path, ask()));
  await Promise.all([stream.sees(4), provider.request(1)]);

  await redis.stop();
  for (let i = 0; i < 3; i++) {
    const refused = await outcomeOf(customer.post(path, ask()));
    expect(refused).toMatchObject({ status: 503, code: "no_capacity" });
    expect(Number(refused.retryAfter)).toBeGreaterThan(0);
  }
  gate.resolve();
  // Both costs are in the ledger while Redis is unavailable, and the responses wait for it.
  await eventually(async () => (await callsOf(client, customer)).length === 2);
  await redis.start();

  expect(await json).toMatchObject({ status: 200 });
  expect(await stream.ended).toBe("closed");
  expect(isWhole(stream)).toBe(true);
  await worksAgain(customer);
  await client.settled();
  expect(provider.requests).toHaveLength(3);
  const calls = await callsOf(client, customer);
  expect(calls.filter(({ amount_usd }) => amount_usd !== "0.00")).toHaveLength(3);
  expect(await availableUsd(client, customer)).toBe(balanceAfter(3));
});

test("Redis hangs: new calls get 503 soon, calls in flight come to their end", async () => {
  const { redis, stores } = await ownServers({ redis: true });
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client } = await startProcesses(stores, env);
  const customer = await client.account("1.00");

  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeEvent: { 4: gate.promise } });
  const stream = read(await customer.post(path, ask({ stream: true })));
  await stream.sees(4);

  await redis.kill("SIGSTOP");
  for (let i = 0; i < 3; i++) {
    const refused = await outcomeOf(customer.post(path, ask()));
    expect(refused).toMatchObject({ status: 503, code: "no_capacity" });
    expect(Number(refused.retryAfter)).toBeGreaterThan(0);
  }
  gate.resolve();
  await redis.kill("SIGCONT");

  expect(await stream.ended).toBe("closed");
  expect(isWhole(stream)).toBe(true);
  await worksAgain(customer);
  await client.settled();
  expect(provider.requests).toHaveLength(2);
  expect(await availableUsd(client, customer)).toBe(balanceAfter(2));
});

test("Redis comes back empty, and the API is back after the worker: the answer waits for it", async () => {
  const { stores } = await ownServers({ redis: true });
  const { provider, env } = await startProvider(shortApiTimeout);
  const wire = await heldWire(stores.REDIS_URL);
  const apiStores = { ...stores, REDIS_URL: wire.address };
  const { client } = await startProcesses(stores, env, { apiStores });
  const customer = await client.account("1.00");
  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeHeaders: gate.promise });
  const json = outcomeOf(customer.post(path, ask()));
  await provider.request(0);

  wire.hold();
  await restartEmpty(stores);
  gate.resolve();
  await eventually(async () => (await callsOf(client, customer)).length === 1);
  wire.reconnect();
  expect(await json).toMatchObject({ status: 200 });
  await worksAgain(customer);
  await client.settled();
  expect(provider.requests).toHaveLength(2);
  expect(await availableUsd(client, customer)).toBe(balanceAfter(2));
});

test("the caller of a stream disconnects while Redis is unavailable: the provider is aborted as soon as it is back", async () => {
  const { redis, stores } = await ownServers({ redis: true });
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client } = await startProcesses(stores, env);
  const customer = await client.account("1.00");
  provider.respond({ beforeEvent: { 4: never } });
  const leaving = new AbortController();
  const stream = read(await customer.post(path, ask({ stream: true }), { signal: leaving.signal }));
  await stream.sees(4);
  await redis.stop();
  leaving.abort();
  expect(await stream.ended).toBe("broken");
  await redis.start();
  const request = await provider.request(0);
  await request.closed;
  expect(request.aborted).toBe(true);
  const { amount_usd, request: record } = await onlyCall(client, customer);
  expect(record).toMatchObject({ status: "cancelled", usage: { output: 4 } });
  expect(Number(amount_usd)).toBeLessThan(0);
});
