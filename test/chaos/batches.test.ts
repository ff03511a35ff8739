import { expect, test } from "vitest";
import type { StoredBatch } from "../../shared/batches/index.ts";
import { chatLine, createBatch, endOf, openBatches, resultsOf } from "../support/batches-setup.ts";
import { restartEmpty, startProcesses, startProvider } from "../support/chaos-setup.ts";
import { ownServers, testStores } from "../support/servers.ts";
import { type Client, eventually, ready, shortTimeouts, spawnApi, spawnWorker } from "../support/service.ts";
import { openWire } from "../support/wire.ts";

const count = 400;
/** The calls of a batch that the provider answers before the fault. */
const answeredFirst = 100;

interface Process {
  kill(signal: NodeJS.Signals): void;
  readonly exited: Promise<unknown>;
}
type Server = { kill(signal: NodeJS.Signals): unknown; start(): Promise<unknown> };
type Servers = Awaited<ReturnType<typeof ownServers<"redis" | "mongo" | "s3">>>;

interface World {
  readonly servers: Servers;
  /** The processes that run: two API instances and a worker. */
  readonly apis: Process[];
  readonly workers: Process[];
  readonly startApi: () => Promise<unknown>;
  readonly startWorker: () => Promise<unknown>;
  /** True once an API instance knows that it is not ready. */
  readonly isUnready: () => Promise<boolean>;
  /** True once the claim of the batch has run out. */
  readonly isUnclaimed: (batch: StoredBatch) => Promise<boolean>;
}

async function end(processes: Process[], signal: NodeJS.Signals): Promise<void> {
  for (const each of processes) each.kill(signal);
  await Promise.all(processes.map(({ exited }) => exited));
}

const killed = async (server: Server) => {
  await server.kill("SIGKILL");
  await server.start();
};
/** Until the service has noticed. */
const frozen = async (server: Server, { isUnready }: World) => {
  await server.kill("SIGSTOP");
  await eventually(isUnready);
  await server.kill("SIGCONT");
};

const faults: Readonly<Record<string, (world: World, batch: StoredBatch) => Promise<unknown>>> = {
  "both APIs are killed, and others start": async ({ apis, startApi }) => {
    await end(apis.splice(0), "SIGKILL");
    await Promise.all([startApi(), startApi()]);
  },
  "the worker is killed, and another starts": async ({ workers, startWorker }) => {
    await end(workers.splice(0), "SIGKILL");
    await startWorker();
  },
  "Redis loses everything": ({ servers }) => restartEmpty(servers.stores),
  "MongoDB is killed": ({ servers }) => killed(servers.mongo),
  "MongoDB is frozen": (world) => frozen(world.servers.mongo, world),
  "storage is killed": ({ servers }) => killed(servers.s3),
  "the APIs stall for longer than a claim lasts": async ({ apis, isUnclaimed }, batch) => {
    for (const api of apis) api.kill("SIGSTOP");
    await eventually(() => isUnclaimed(batch));
    for (const api of apis) api.kill("SIGCONT");
  },
  "an API stops and the other one goes on": ({ apis }) => end(apis.splice(0, 1), "SIGTERM"),
};

async function startWorld() {
  const servers = await ownServers({ redis: true, mongo: true, s3: true });
  const { stores } = servers;
  const { provider, env } = await startProvider(shortTimeouts);
  const { api, worker, client } = await startProcesses(stores, env);
  const opened = await openBatches(stores, { env });
  const apis = [api];
  const workers: Process[] = [worker];
  const world: World = {
    servers,
    apis,
    workers,
    async startApi() {
      const started = await spawnApi(stores, env);
      await ready(started.client);
      apis.push(started);
    },
    async startWorker() {
      workers.push(await spawnWorker(stores, env));
    },
    isUnready: async () => (await fetch(`${apis[0]?.client.baseUrl}/readyz`)).status === 503,
    isUnclaimed: async ({ account, _id }) =>
      ((await opened.batches.find(account, _id))?.dueAt?.getTime() ?? 0) < Date.now(),
  };
  await world.startApi();
  return { world, opened, provider, client };
}

const linesOf = (batch: number) =>
  Array.from({ length: count }, (_, line) => chatLine(line, `Batch ${batch}.`, { model: "mock/chat" }));

async function openAccount(client: Client) {
  const { id } = await client.account("1.00");
  const { data } = await client.admin<{ data: { id: string }[] }>("GET", `/accounts/${id}/keys`);
  return { account: id, keyId: data[0]?.id ?? "" };
}

/** Each line has one result and costs the same. Whatever ran twice is charged once. */
async function expectExact(opened: Awaited<ReturnType<typeof openBatches>>, batch: StoredBatch, name: string) {
  const ended = await endOf(opened, batch);
  expect({ ...ended, name }).toMatchObject({ name, status: "completed", counts: { succeeded: count, failed: 0 } });
  const named = [...ended.outputs, ...ended.failures].map(({ key }) => key).toSorted();
  await eventually(async () => String(await opened.partsOf(batch._id)) === String(named));
  const results = await resultsOf(opened, ended);
  const idsOf = (lines: readonly { readonly custom_id: string }[]) =>
    lines.map(({ custom_id }) => custom_id).toSorted();
  expect([name, ...idsOf(results)]).toEqual([name, ...idsOf(linesOf(0))]);
  const entries = await opened.mongo.db
    .collection("ledger")
    .find({ account: batch.account, kind: "usage", amount: { $ne: 0n } })
    .toArray();
  const charged = entries.reduce((sum, { amount }) => sum - BigInt(amount as bigint), 0n);
  expect([name, charged, entries.length]).toEqual([name, ended.costNanoUsd, count]);
  const ids = new Set(results.map(({ response }) => response?.request_id));
  expect([name, ...entries.map(({ _id }) => String(_id)).filter((id) => !ids.has(id))]).toEqual([name]);
}

test("processes and stores fail one after the other: each line has one result, and costs what the ledger says", async () => {
  const { world, opened, provider, client } = await startWorld();
  const { batches, mongo } = opened;
  const names = Object.keys(faults);
  // Most lines of a batch are left when its fault begins, and some of them end during it.
  const gates = names.map(() => ({ asked: 0, opens: Promise.withResolvers<void>() }));
  provider.always(async ({ body }) => {
    const [, at] = /^Batch (\d+)/.exec((body["messages"] as { content: string }[])[0]?.content ?? "") ?? [];
    const gate = gates[Number(at)];
    if (gate && ++gate.asked > answeredFirst) await gate.opens.promise;
    return {};
  });

  const accounts = await Promise.all(names.map(() => openAccount(client)));
  const started: { name: string; batch: StoredBatch }[] = [];
  for (const [n, name] of names.entries()) {
    const owner = accounts[n] as (typeof accounts)[number];
    const batch = await createBatch(opened, owner, linesOf(n));
    started.push({ name, batch });
    await eventually(async () => ((await batches.find(owner.account, batch._id))?.counts.succeeded ?? 0) > 20);
    gates[n]?.opens.resolve();
    await faults[name]?.(world, batch);
  }

  for (const { name, batch } of started) await expectExact(opened, batch, name);
  expect(await mongo.db.collection("batchLines").countDocuments({})).toBe(0);
});

test("an API that stalls while it admits lines does not begin what another one has recorded", async () => {
  const stores = await testStores({ oneServer: true });
  const { provider, env } = await startProvider(shortTimeouts);
  const opened = await openBatches(stores, { env });
  let stall: { readonly at: string; run(): void } | undefined;
  const { url } = await openWire(stores.REDIS_URL, (client, server) => {
    client.on("data", (data: Buffer) => {
      server.write(data);
      if (!stall || !data.includes(stall.at)) return;
      stall.run();
      stall = undefined;
    });
    server.on("data", (data: Buffer) => client.write(data));
  });
  const { api, client } = await startProcesses(stores, env, { apiStores: { ...stores, REDIS_URL: url.href } });
  const owner = await openAccount(client);
  const isStalled = Promise.withResolvers<void>();
  // It has asked for the slots of the first lines.
  const run = () => {
    api.kill("SIGSTOP");
    isStalled.resolve();
  };
  stall = { at: owner.keyId, run };
  const batch = await createBatch(opened, owner, linesOf(0));
  await isStalled.promise;
  const other = await spawnApi(stores, env);
  await ready(other.client);
  await endOf(opened, batch);
  api.kill("SIGCONT");
  const isInterrupted = () => api.log.some(({ msg }) => String(msg).startsWith("the work at a batch was interrupted"));
  await eventually(() => isInterrupted() || provider.requests.length > count);
  await expectExact(opened, batch, "stalled");
  expect(await opened.mongo.db.collection("batchLines").countDocuments({})).toBe(0);
  expect(provider.requests).toHaveLength(count);
});
