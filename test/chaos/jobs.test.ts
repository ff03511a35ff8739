import { expect, test } from "vitest";
import {
  ask,
  availableUsd,
  balanceAfter,
  callsOf,
  fullCostUsd,
  never,
  outcomeOf,
  path,
  restartEmpty,
  startProcesses,
  startProvider,
  startTwoApis,
} from "../support/chaos-setup.ts";
import { createDeath } from "../support/deadly-wire.ts";
import { ownServers, type Stores, testStores } from "../support/servers.ts";
import {
  type Client,
  type Customer,
  eventually,
  ready,
  shortApiTimeout,
  shortTimeouts,
  spawnApi,
  spawnWorker,
} from "../support/service.ts";

interface Job {
  readonly id: string;
  readonly status: string;
  readonly cost_usd: string;
  readonly error: { readonly code: string } | null;
}

async function submit(customer: Customer, headers: Record<string, string> = {}): Promise<string> {
  const answer = await customer.post(path, ask(), { headers: { prefer: "respond-async", ...headers } });
  const { id } = (await answer.json()) as Job;
  expect([answer.status, typeof id]).toEqual([202, "string"]);
  return id;
}

const get = (client: Client, customer: Customer, jobPath: string) =>
  fetch(`${client.baseUrl}/v1/jobs/${jobPath}`, { headers: { authorization: `Bearer ${customer.key}` } });

const ended = (client: Client, customer: Customer, id: string): Promise<Job> =>
  eventually(async () => {
    const answer = await get(client, customer, id);
    const job = (await answer.json()) as Job;
    return answer.status === 503 || ["queued", "in_progress"].includes(job.status) ? undefined : job;
  });

test("an API killed once it has accepted a job: the job runs and is charged, another API has its result", async () => {
  const stores = await testStores({ oneServer: true });
  const { provider, env } = await startProvider(shortApiTimeout);
  const { api, client } = await startTwoApis(stores, env);
  const customer = await api.client.account("1.00");
  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeHeaders: gate.promise }, { beforeHeaders: gate.promise });
  const id = await submit(customer);
  const awaited = customer.post(path, ask()).catch(() => undefined);
  await provider.request(1);
  api.kill("SIGKILL");
  await Promise.all([api.exited, awaited]);
  gate.resolve();
  expect(await ended(client, customer, id)).toMatchObject({ status: "completed", cost_usd: "0.000025" });
  const result = await outcomeOf(get(client, customer, `${id}/result`));
  expect(result).toMatchObject({ status: 200, body: { object: "chat.completion" } });
  // The call whose answer died with its API is refunded, and the job is not.
  const refunds = () => callsOf(client, customer, "refund");
  await eventually(async () => (await refunds()).length > 0);
  await client.settled();
  expect((await refunds()).map(({ id: refund }) => refund)).not.toContain(`refund:${id.replace("job_", "req_")}`);
  expect(await availableUsd(client, customer)).toBe(balanceAfter(1));
});

test("a worker killed: a job that it had not started runs elsewhere, one that it ran fails and costs nothing", async () => {
  const stores = await testStores();
  const { provider, env } = await startProvider(shortTimeouts);
  const { worker, client } = await startProcesses(stores, env, { worker: { WORKER_CONCURRENCY_CHAT: "1" } });
  const customer = await client.account("1.00");
  provider.respond({ beforeHeaders: never });
  const running = await submit(customer, { "idempotency-key": "order-17" });
  await provider.request(0);
  const waiting = await submit(customer);
  worker.kill("SIGKILL");
  await worker.exited;
  await spawnWorker(stores, env);
  // The killed worker's record may have expired before the API has read the new one's.
  await ready(client);
  expect(await ended(client, customer, running)).toMatchObject({
    status: "failed",
    cost_usd: "0.00",
    error: { code: "no_capacity" },
  });
  expect(await ended(client, customer, waiting)).toMatchObject({ status: "completed" });
  // The key of a job that did not complete is free.
  const again = await submit(customer, { "idempotency-key": "order-17" });
  expect(again).not.toBe(running);
  expect(await ended(client, customer, again)).toMatchObject({ status: "completed" });
  await client.settled();
  expect(provider.requests).toHaveLength(3);
  expect(await availableUsd(client, customer)).toBe(balanceAfter(2));
});

test("Redis comes back empty: jobs that waited run, each once", async () => {
  const { stores } = await ownServers({ redis: true });
  const { provider, env } = await startProvider(shortTimeouts);
  const { worker, client } = await startProcesses(stores, env);
  const customer = await client.account("1.00");
  worker.kill("SIGSTOP");
  const ids = await Promise.all(Array.from({ length: 5 }, () => submit(customer)));
  await restartEmpty(stores);
  worker.kill("SIGCONT");
  for (const id of ids) expect(await ended(client, customer, id)).toMatchObject({ status: "completed" });
  await client.settled();
  expect(provider.requests).toHaveLength(5);
  expect(await callsOf(client, customer)).toHaveLength(5);
  expect(await availableUsd(client, customer)).toBe(balanceAfter(5));
});

test("a job that waits is cancelled: no worker starts it, and it costs nothing", async () => {
  const stores = await testStores();
  const { provider, env } = await startProvider(shortTimeouts);
  const { worker, client } = await startProcesses(stores, env);
  const customer = await client.account("1.00");
  worker.kill("SIGSTOP");
  const id = await submit(customer);
  const cancelled = await customer.post(`/v1/jobs/${id}/cancel`, undefined);
  expect(await cancelled.json()).toMatchObject({ id, status: "cancelled", cost_usd: "0.00" });
  worker.kill("SIGCONT");
  await client.settled();
  const result = await outcomeOf(get(client, customer, `${id}/result`));
  expect(result).toMatchObject({ status: 409, code: "conflict" });
  expect(provider.requests).toHaveLength(0);
  expect(await availableUsd(client, customer)).toBe("1.00");
});

/** A process that dies at one of the messages about calls of the account that it sends to its stores. */
async function startDoomed<Process extends { kill(signal: NodeJS.Signals): void }>(
  stores: Stores,
  fate: { at: number; executed: boolean },
  account: string,
  spawn: (stores: Stores) => Promise<Process>,
): Promise<Process> {
  const death = createDeath(fate);
  const [REDIS_URL, MONGODB_URI] = await Promise.all([death.wire(stores.REDIS_URL), death.wire(stores.MONGODB_URI)]);
  const doomed = await spawn({ ...stores, REDIS_URL, MONGODB_URI });
  death.arm(
    () => doomed.kill("SIGKILL"),
    (message) => message.includes(account),
  );
  return doomed;
}

const fates = Array.from({ length: 12 }, (_, n) => ({ at: 1 + Math.floor(n / 2), executed: n % 2 === 1 }));

test("APIs and workers die at any of their messages: every stored job ends, runs at most once, and costs what it says", async () => {
  const stores = await testStores({ oneServer: true });
  const { provider, env } = await startProvider(shortTimeouts);
  const { client } = await spawnApi(stores, env);
  const customer = await client.account("1.00");
  const accepted = new Set<string>();
  let sent = 0;
  const submitTo = async ({ baseUrl }: Client): Promise<void> => {
    const prompt = `job ${++sent}`;
    const answer = await fetch(`${baseUrl}${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${customer.key}`,
        "content-type": "application/json",
        prefer: sent % 2 === 0 ? "respond-async" : "respond-async, wait=1",
      },
      body: JSON.stringify(ask({ messages: [{ role: "user", content: prompt }] })),
    });
    const job = (await answer.json()) as Job;
    if (answer.status === 202) accepted.add(job.id);
  };
  const submitUntil = async (to: Client, exited: Promise<unknown>) => {
    let isOver = false;
    void exited.then(() => {
      isOver = true;
    });
    while (!isOver) await submitTo(to).catch(() => undefined);
  };
  const spawn = async (own: Stores) => spawnWorker(own, env);
  const workers = await Promise.all(fates.map((fate) => startDoomed(stores, fate, customer.id, spawn)));
  const apis = await Promise.all(
    fates.map((fate) => startDoomed(stores, fate, customer.id, (own) => spawnApi(own, env))),
  );
  await Promise.all([client, ...apis.map((api) => api.client)].map(ready));
  await Promise.all(apis.map((api) => submitUntil(api.client, api.exited)));
  await submitUntil(client, Promise.all(workers.map(({ exited }) => exited)));
  await spawnWorker(stores, env);

  const jobs = await eventually(async () => {
    const headers = { authorization: `Bearer ${customer.key}` };
    const page = await fetch(`${client.baseUrl}/v1/jobs?limit=200`, { headers });
    const { data, has_more } = (await page.json()) as { data: Job[]; has_more: boolean };
    expect(has_more).toBe(false);
    return data.every(({ status }) => !["queued", "in_progress"].includes(status)) ? data : undefined;
  });
  await client.settled();
  const ids = jobs.map(({ id }) => id);
  expect(ids).toEqual(expect.arrayContaining([...accepted]));
  const completed = jobs.filter(({ status }) => status === "completed");
  expect(completed.length).toBeGreaterThan(0);
  for (const { id, status, cost_usd } of jobs) {
    expect([status, cost_usd]).toEqual(status === "completed" ? [status, fullCostUsd] : ["failed", "0.00"]);
    const { status: answered } = await get(client, customer, `${id}/result`);
    expect(answered).toBe(status === "completed" ? 200 : 503);
  }
  expect(await availableUsd(client, customer)).toBe(balanceAfter(completed.length));
  const prompts = provider.requests.map(({ body }) => JSON.stringify(body.messages));
  expect(new Set(prompts).size).toBe(prompts.length);
});
