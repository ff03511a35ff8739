import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { finished } from "node:stream/promises";
import { expect, test } from "vitest";
import { losing, redisPair } from "../support/chaos-failover-setup.ts";
import {
  ask,
  availableUsd,
  callCounts,
  callsOf,
  type Entry,
  fullCostUsd,
  lost,
  never,
  openCollection,
  path,
  read,
  redisOf,
  startProcesses,
  startProvider,
} from "../support/chaos-setup.ts";
import { createDeath } from "../support/deadly-wire.ts";
import { mockText } from "../support/mock-openai.ts";
import { type Stores, testStores, withRedis } from "../support/servers.ts";
import {
  type Client,
  type Customer,
  type Environment,
  eventually,
  ready,
  shortApiTimeout,
  shortTimeouts,
  spawnApi,
  spawnWorker,
} from "../support/service.ts";

test("an API killed mid-call: its running work is aborted at the provider, its waiting work never starts", async () => {
  const stores = await testStores();
  const { provider, env } = await startProvider(shortApiTimeout);
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
  await Promise.all(provider.requests.map(({ closed }) => closed));
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

interface Doomed {
  readonly customer: Customer;
  /** The ids of fully answered calls. */
  readonly answered: Set<string>;
  /** Resolves once the process is dead and all its callers have been disconnected. */
  readonly ended: Promise<void>;
}

/**
 * An API process that dies while three callers call repeatedly. It dies at one of the messages that it sends to its
 * stores for these calls, not at a periodic one, which outnumber them on a busy machine.
 */
async function startDoomed(
  stores: Stores,
  env: Environment,
  owner: Client,
  fate: { at: number; executed: boolean },
): Promise<Doomed & { arm(): void }> {
  const death = createDeath(fate);
  const [REDIS_URL, MONGODB_URI] = await Promise.all([death.wire(stores.REDIS_URL), death.wire(stores.MONGODB_URI)]);
  const api = await spawnApi({ ...stores, REDIS_URL, MONGODB_URI }, env);
  await ready(api.client);
  const { id, key } = await owner.account("1.00");
  const answered = new Set<string>();
  const askOnce = async () => {
    const response = await fetch(`${api.client.baseUrl}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(ask()),
    });
    await response.text();
    if (response.status === 200) answered.add(response.headers.get("x-request-id") as string);
  };
  const askUntilDeath = async () => {
    for (;;)
      if (
        await askOnce().then(
          () => false,
          () => true,
        )
      )
        return;
  };
  await askOnce();
  const asking = Promise.withResolvers<void>();
  const callers = asking.promise.then(() => Promise.all([1, 2, 3].map(askUntilDeath)));
  return {
    customer: { id } as Customer,
    answered,
    ended: Promise.all([callers, api.exited]).then(() => {}),
    arm() {
      const isOfCalls = (message: Buffer) => message.includes(id) || message.includes("xread");
      death.arm(() => api.kill("SIGKILL"), isOfCalls);
      asking.resolve();
    },
  };
}

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
  const { provider, env } = await startProvider(shortApiTimeout);
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
  for (const incoming of slow) await expect(finished(incoming.resume())).rejects.toThrow("aborted");
  await eventually(async () => (await callsOf(client, customer, "refund")).length === 2);
  expect(await client.settled()).toMatchObject({ ok: true, undecided: 0 });
  expect(await availableUsd(client, customer)).toBe("0.999978");
  const refunds = (await callsOf(client, customer, "refund")).map(({ id }) => id);
  expect(refunds.toSorted()).toEqual(slow.map((incoming) => `refund:${idOf(incoming)}`).toSorted());
});

/** The current cost of each call of the account. */
async function costsOf(client: Client, customer: Customer): Promise<Map<string, number>> {
  const costs = new Map<string, number>();
  const add = ({ id, amount_usd }: Entry) => {
    const call = id.replace(/^refund:/, "");
    costs.set(call, (costs.get(call) ?? 0) - Number(amount_usd));
  };
  for (const kind of ["usage", "refund"]) for (const entry of await callsOf(client, customer, kind)) add(entry);
  return costs;
}

const fates = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ at: 1 + Math.floor(n / 2), executed: n % 2 === 1 }));

test.for([
  { what: "alone", deaths: fates(16) },
  { what: "with a worker", deaths: fates(8), worker: true },
  {
    what: "with a worker, while Redis fails over without its last second",
    deaths: fates(8),
    worker: true,
    failover: true,
  },
])(
  "API processes die at any of their messages, $what: JSON that nobody received costs nothing within a minute",
  async ({ deaths, worker = false, failover = false }) => {
    const pair = failover ? await redisPair() : undefined;
    const own = await testStores({ oneServer: true });
    const stores = pair ? withRedis(own, { REDIS_URL: pair.address }) : own;
    const { provider, env } = await startProvider(shortTimeouts);
    const { client } = await startProcesses(stores, env);
    const second = await spawnWorker(stores, env);
    const survivor = await client.account("1.00");
    const doomed = await Promise.all(deaths.map((fate) => startDoomed(stores, env, client, fate)));

    const losingData = pair && (await losing(pair));
    for (const each of doomed) each.arm();
    if (worker) await doomed[0]?.ended.then(() => second.kill("SIGKILL"));
    await Promise.all(doomed.map(({ ended }) => ended));
    await losingData?.end();
    provider.always();

    // Another instance still serves, and the calls that it answered stay paid.
    await eventually(async () => (await survivor.post(path, ask())).status === 200);
    const isFree = async ({ customer, answered }: Doomed) => {
      const costs = await costsOf(client, customer);
      return [...costs].every(([id, cost]) => answered.has(id) || Math.abs(cost) < 1e-12);
    };
    for (const each of doomed) await eventually(() => isFree(each));

    expect(await client.settled()).toMatchObject({ ok: true, open_holds: 0, undecided: 0 });
    const refunds = await Promise.all(doomed.map(({ customer }) => callsOf(client, customer, "refund")));
    // A failover may lose all their jobs.
    expect(refunds.flat().length).toBeGreaterThanOrEqual(failover ? 0 : 1);
    for (const { customer, answered } of doomed) {
      const costs = [...(await costsOf(client, customer))];
      const charged = costs.filter(([, cost]) => Math.abs(cost) > 1e-12);
      for (const [id, cost] of charged) {
        expect(answered).toContain(id);
        expect(cost).toBeCloseTo(Number(fullCostUsd), 12);
      }
      expect(Number(await availableUsd(client, customer))).toBeCloseTo(1 - charged.length * Number(fullCostUsd), 12);
    }
    const paid = [...(await costsOf(client, survivor)).values()].filter((cost) => cost > 0);
    expect(paid).toHaveLength(1);
  },
);
