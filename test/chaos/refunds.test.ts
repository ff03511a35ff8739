import { expect, test } from "vitest";
import {
  ask,
  availableUsd,
  balanceAfter,
  callsOf,
  openCollection,
  outcomeOf,
  path,
  startProcesses,
  startProvider,
} from "../support/chaos-setup.ts";
import { createDeath } from "../support/deadly-wire.ts";
import { type Stores, testStores } from "../support/servers.ts";
import {
  type Client,
  type Customer,
  type Environment,
  eventually,
  postWith,
  ready,
  shortApiTimeout,
  shortTimeouts,
  spawnApi,
} from "../support/service.ts";

interface Note {
  readonly _id: string;
  readonly dead?: true;
  readonly holdsEnded?: true;
}

/** Makes the notes of all instances older: a living one soon writes its own again. */
async function openNotes(stores: Stores) {
  const notes = await openCollection<Note>(stores, "apiInstances");
  return {
    find: (filter: object) => notes.findOne(filter),
    silence: () => notes.updateMany({}, [{ $set: { notedAt: { $subtract: ["$notedAt", 60_000] } } }]),
  };
}

test("an API that freezes right after its answers were read, and then dies: none of them is refunded", async () => {
  const stores = await testStores();
  const { env } = await startProvider(shortApiTimeout);
  const { api: doomed } = await startProcesses(stores, env);
  const customer = await doomed.client.account("1.00");
  const notes = await openNotes(stores);
  const instance = (await notes.find({}))?._id;
  const calls = 30;
  const outcomes = await Promise.all(Array.from({ length: calls }, () => outcomeOf(customer.post(path, ask()))));
  doomed.kill("SIGSTOP");
  expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set([200]));
  doomed.kill("SIGKILL");
  const { client } = await spawnApi(stores, env);
  await notes.silence();
  await eventually(() => notes.find({ _id: instance, holdsEnded: true }));
  expect(await callsOf(client, customer, "refund")).toEqual([]);
  await client.settled();
  expect(await availableUsd(client, customer)).toBe(balanceAfter(calls));
});

test("an API that freezes for so long that its answers are refunded delivers none of them when it goes on", async () => {
  const stores = await testStores();
  const { provider, env } = await startProvider(shortApiTimeout);
  const { api: frozen } = await startProcesses(stores, env);
  const { client } = await spawnApi(stores, env);
  const customer = await frozen.client.account("1.00");
  const notes = await openNotes(stores);
  const gate = Promise.withResolvers<void>();
  const calls = 3;
  provider.always({ beforeHeaders: gate.promise });
  const outcomes = Array.from({ length: calls }, () => outcomeOf(customer.post(path, ask())));
  await provider.request(calls - 1);
  frozen.kill("SIGSTOP");
  gate.resolve();
  await eventually(async () => (await callsOf(client, customer)).length === calls);
  await notes.silence();
  await eventually(async () => (await callsOf(client, customer, "refund")).length === calls);
  frozen.kill("SIGCONT");
  for (const { status, body } of await Promise.all(outcomes)) {
    expect(status).toBe(503);
    expect(body.error.message).toMatch(/was paused/);
  }
  expect((await customer.post(path, ask())).status).toBe(200);
  await client.settled();
  expect(await callsOf(client, customer, "refund")).toHaveLength(calls);
  expect(await availableUsd(client, customer)).toBe(balanceAfter(1));
  await eventually(() => notes.find({ dead: { $exists: false }, next: 2 ** 32 + 1 }));
});

/** An event loop that is blocked whenever a note of deliveries is due. */
const withoutNotes = `--import data:text/javascript,${encodeURIComponent(
  "const every = setInterval; globalThis.setInterval = (run, ms, ...more) => every(run, ms === 250 ? 2 ** 31 - 1 : ms, ...more);",
)}`;

/** An API that is killed when its stores get the nth message of its calls. All that it has written by then arrives. */
async function startMortal(stores: Stores, env: Environment, owner: Client, nth: number) {
  const death = createDeath({ at: nth, executed: false, delivers: true });
  const [REDIS_URL, MONGODB_URI] = await Promise.all([death.wire(stores.REDIS_URL), death.wire(stores.MONGODB_URI)]);
  const api = await spawnApi({ ...stores, REDIS_URL, MONGODB_URI }, { ...env, NODE_OPTIONS: withoutNotes });
  await ready(api.client);
  const { id, key } = await owner.account("1.00");
  const post = postWith(api.client.baseUrl, key);
  const received = new Set<string>();
  const askOnce = async () => {
    const response = await post(path, ask());
    await response.text();
    if (response.status === 200) received.add(response.headers.get("x-request-id") as string);
  };
  const askUntilDeath = async () => {
    for (;;) await askOnce();
  };
  // Its lookups are cached afterwards.
  await askOnce();
  return {
    customer: { id } as Customer,
    received,
    async run(): Promise<void> {
      const isOfCalls = (data: Buffer) => data.includes(id) || data.includes("xread") || data.includes("delivered:");
      death.arm(() => api.kill("SIGKILL"), isOfCalls);
      await Promise.allSettled([1, 2, 3].map(askUntilDeath));
      await api.exited;
    },
  };
}

test("APIs die at any message of their calls, without a note since they began: what was received is charged, the rest is refunded", async () => {
  const stores = await testStores({ oneServer: true });
  const { env } = await startProvider(shortTimeouts);
  const { client } = await startProcesses(stores, env);
  const notes = await openNotes(stores);
  for (let first = 30; first < 42; first += 4) {
    const mortals = await Promise.all(
      Array.from({ length: 4 }, (_, more) => startMortal(stores, env, client, first + more)),
    );
    await Promise.all(mortals.map((mortal) => mortal.run()));
    await notes.silence();
    for (const { customer, received } of mortals) {
      expect(received.size).toBeGreaterThan(0);
      const charges = async (kind: string) =>
        (await callsOf(client, customer, kind))
          .filter(({ amount_usd: amount }) => Number(amount) !== 0)
          .map(({ id }) => id.replace(/^refund:/, ""));
      await eventually(async () => {
        const refunded = new Set(await charges("refund"));
        return (await charges("usage")).every((id) => received.has(id) || refunded.has(id));
      });
      // The one that was being written between two system calls.
      const twice = (await charges("refund")).filter((id) => received.has(id));
      expect(twice.length).toBeLessThanOrEqual(1);
    }
  }
  expect(await client.settled()).toMatchObject({ ok: true, undecided: 0, open_holds: 0 });
});
