import { expect } from "vitest";
import { losing, redisPair } from "../support/chaos-failover-setup.ts";
import {
  ask,
  availableUsd,
  callsOf,
  type Entry,
  fullCostUsd,
  path,
  startProcesses,
  startProvider,
} from "../support/chaos-setup.ts";
import { createDeath } from "../support/deadly-wire.ts";
import { type Stores, testStores, withRedis } from "../support/servers.ts";
import {
  type Client,
  type Customer,
  type Environment,
  eventually,
  ready,
  spawnApi,
  spawnWorker,
} from "../support/service.ts";
import { sideBySide } from "../support/side-by-side.ts";

/** Not more at once, because they start many processes. */
const test = sideBySide(2);

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

for (const { what, deaths, worker = false, failover = false } of [
  { what: "with a worker", deaths: fates(8), worker: true },
  {
    what: "with a worker, while Redis fails over without its last second",
    deaths: fates(8),
    worker: true,
    failover: true,
  },
  { what: "alone", deaths: fates(16) },
])
  test(`API processes die at any of their messages, ${what}: JSON that nobody received costs nothing within a minute`, async () => {
    const pair = failover ? await redisPair() : undefined;
    const own = await testStores({ oneServer: true });
    const stores = pair ? withRedis(own, { REDIS_URL: pair.address }) : own;
    const { provider, env } = await startProvider();
    const { client } = await startProcesses(stores, env);
    const second = await spawnWorker(stores, env);
    const survivor = await client.account("1.00");
    const doomed = await Promise.all(deaths.map((fate) => startDoomed(stores, env, client, fate)));

    const losingData = pair && (await losing(pair));
    for (const each of doomed) each.arm();
    if (worker) await doomed[0]?.ended.then(() => second.kill("SIGKILL"));
    await Promise.all(doomed.map(({ ended }) => ended));
    await losingData?.end();
    const diedAt = Date.now();
    provider.always();

    // Another instance still serves, and the calls that it answered stay paid.
    await eventually(async () => (await survivor.post(path, ask())).status === 200);
    const isFree = async ({ customer, answered }: Doomed) => {
      const costs = await costsOf(client, customer);
      return [...costs].every(([id, cost]) => answered.has(id) || Math.abs(cost) < 1e-12);
    };
    for (const each of doomed) await eventually(() => isFree(each));
    expect(Date.now() - diedAt).toBeLessThan(60_000);

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
  });
