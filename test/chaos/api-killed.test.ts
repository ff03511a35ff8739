import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { finished } from "node:stream/promises";
import { expect } from "vitest";
import {
  ask,
  availableUsd,
  callCounts,
  callsOf,
  lost,
  never,
  openCollection,
  pacedMs,
  path,
  read,
  redisOf,
  startProcesses,
  startProvider,
} from "../support/chaos-setup.ts";
import { mockText } from "../support/mock-openai.ts";
import { testStores } from "../support/servers.ts";
import { type Client, eventually, spawnApi } from "../support/service.ts";
import { sideBySide } from "../support/side-by-side.ts";

const test = sideBySide(2);

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
  const { client } = await spawnApi(stores, env);
  const cut = Promise.all(provider.requests.map(({ closed }) => closed));
  expect(await pacedMs(client, cut)).toBeLessThan(10_000);
  expect(provider.requests.map(({ aborted }) => aborted)).toEqual([true, true]);

  await client.settled();
  const calls = await callsOf(client, customer);
  expect(calls).toHaveLength(3);
  for (const { request } of calls) expect(request.status).toBe("cancelled");
  const charged = calls.filter(({ amount_usd }) => amount_usd !== "0.00");
  // Four events were written in frames: "Hello there, how" is 16 bytes, which is 4 tokens.
  expect(charged).toHaveLength(1);
  expect(charged[0]?.request).toMatchObject({ attempts: { length: 1 }, estimated: true, usage: { output: 4 } });
  expect(stream.text()).toBe(mockText.slice(0, 16));
  const { input = 0, output = 0 } = charged[0]?.request.usage ?? {};
  expect(await availableUsd(client, customer)).toBe(`0.9999${String(100 - input - 2 * output).padStart(2, "0")}`);
  expect(provider.requests).toHaveLength(2);
});

/** Sends a call, and reads only the head of the response and the bytes that arrive with it. */
async function receive({ baseUrl }: Client, key: string): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const outgoing = request(`${baseUrl}${path}`, { method: "POST", headers, agent: false });
  outgoing.end(JSON.stringify(ask()));
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  return incoming;
}

/** Reads half of a response, then resets the connection. */
async function giveUp(incoming: IncomingMessage): Promise<void> {
  let rest = Number(incoming.headers["content-length"]) / 2;
  for await (const bytes of incoming) if ((rest -= (bytes as Buffer).length) < 0) break;
}

test("an API killed while it sends answers: those that have not arrived are refunded, also slow ones; read or given up, they are paid", async () => {
  const stores = await testStores();
  const { provider, env } = await startProvider();
  const { api: doomed } = await startProcesses(stores, env);
  const [{ client }, customer] = await Promise.all([spawnApi(stores, env), doomed.client.account("1.00")]);
  // Calls of a key with a budget have individual holds.
  const budget = { limit_usd: "0.5", period: "day" };
  const { key } = await client.admin<{ key: string }>("POST", `/accounts/${customer.id}/keys`, { budget });
  // Larger than the buffers of both ends of a connection.
  provider.always({ text: "x".repeat(24 * 1024 * 1024) });
  const idOf = ({ headers }: IncomingMessage) => String(headers["x-request-id"]);

  const read = await receive(doomed.client, customer.key);
  await finished(read.resume());
  const givenUp = await receive(doomed.client, customer.key);
  await giveUp(givenUp);
  const instances = await openCollection(stores, "apiInstances");
  await eventually(() => instances.findOne({ next: 2, open: [] }).then((note) => note !== null));
  const slow = await Promise.all([customer.key, key].map((each) => receive(doomed.client, each)));
  const charges = (await callsOf(client, customer)).map(({ amount_usd }) => amount_usd);
  expect(new Set(charges)).toEqual(new Set(["-0.000011"]));
  expect(charges).toHaveLength(4);

  doomed.kill("SIGKILL");
  const diedAt = Date.now();
  for (const incoming of slow) await expect(finished(incoming.resume())).rejects.toThrow("aborted");
  await eventually(async () => (await callsOf(client, customer, "refund")).length === 2);
  expect(Date.now() - diedAt).toBeLessThan(60_000);
  expect(await client.settled()).toMatchObject({ ok: true, undecided: 0 });
  expect(await availableUsd(client, customer)).toBe("0.999978");
  const refunds = (await callsOf(client, customer, "refund")).map(({ id }) => id);
  expect(refunds.toSorted()).toEqual(slow.map((incoming) => `refund:${idOf(incoming)}`).toSorted());
});
