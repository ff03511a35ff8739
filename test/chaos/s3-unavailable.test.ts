import { expect, test } from "vitest";
import {
  ask,
  availableUsd,
  balanceAfter,
  callCounts,
  callsOf,
  outcomeOf,
  path,
  redisOf,
  startProcesses,
  startProvider,
} from "../support/chaos-setup.ts";
import { ownServers } from "../support/servers.ts";
import { eventually, shortApiTimeout } from "../support/service.ts";

/** Requests over 64 KB are stored outside the job. */
const large = ask({ messages: [{ role: "user", content: "x".repeat(70_000) }] });

test("S3 stopped: a large call gets a clear 503 and costs nothing, small calls continue", async () => {
  const { s3, stores } = await ownServers({ s3: true });
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client } = await startProcesses(stores, env);
  const customer = await client.account("1.00");
  const asked = () => outcomeOf(customer.post(path, large));
  expect(await asked()).toMatchObject({ status: 200 });

  await s3.stop();
  const refused = await asked();
  expect(refused).toMatchObject({ status: 503, code: "no_capacity" });
  expect(refused.body.error.message).toMatch(/storage/i);
  expect(Number(refused.retryAfter)).toBeGreaterThan(0);
  expect(await outcomeOf(customer.post(path, ask()))).toMatchObject({ status: 200 });
  await client.settled();
  const calls = await callsOf(client, customer);
  expect(calls.map(({ amount_usd }) => amount_usd)).toEqual(["-0.000025", "0.00", "-0.000025"]);

  await s3.start();
  expect(await asked()).toMatchObject({ status: 200 });
  await client.settled();
  expect(provider.requests).toHaveLength(3);
  expect(await availableUsd(client, customer)).toBe(balanceAfter(3));
});

test("S3 stops after it took a body: the worker cannot read it, the caller gets a clear 503 and pays nothing", async () => {
  const { s3, stores } = await ownServers({ s3: true });
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client } = await startProcesses(stores, env, { worker: { WORKER_CONCURRENCY_CHAT: "1" } });
  const customer = await client.account("1.00");
  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeHeaders: gate.promise });
  const blocking = outcomeOf(customer.post(path, ask()));
  await provider.request(0);
  const redis = redisOf(stores);
  const waiting = outcomeOf(customer.post(path, large));
  await eventually(async () => (await callCounts(redis, "chat")).waiting === 1);
  await s3.stop();
  gate.resolve();
  expect(await blocking).toMatchObject({ status: 200 });
  expect(await waiting).toMatchObject({ status: 503, code: "no_capacity" });
  await client.settled();
  expect(provider.requests).toHaveLength(1);
  expect(await availableUsd(client, customer)).toBe(balanceAfter(1));
});

test("S3 hangs for a moment: a large call waits for it, small calls continue", async () => {
  const { s3, stores } = await ownServers({ s3: true });
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client } = await startProcesses(stores, env);
  const customer = await client.account("1.00");
  await s3.kill("SIGSTOP");
  const waiting = outcomeOf(customer.post(path, large));
  await eventually(async () => (await client.check()).open_holds === 1);
  expect(await outcomeOf(customer.post(path, ask()))).toMatchObject({ status: 200 });
  expect(provider.requests).toHaveLength(1);
  await s3.kill("SIGCONT");
  expect(await waiting).toMatchObject({ status: 200 });
  await client.settled();
  expect(await availableUsd(client, customer)).toBe(balanceAfter(2));
});
