import { expect, test } from "vitest";
import { deadlyMongo } from "../support/deadly-wire.ts";
import { testStores } from "../support/servers.ts";
import { type Client, eventually, ready, shortTimeouts, spawnApi, spawnWorker } from "../support/service.ts";
import { asking, localModel } from "../support/service-setup.ts";
import { startReceiver, webhookEnvironment } from "../support/webhook-receiver.ts";
import { webhookAccount } from "../support/webhooks-setup.ts";

type Owner = Awaited<ReturnType<typeof webhookAccount>>;

interface Job {
  readonly id: string;
  readonly status: string;
}

/** The messages to MongoDB between the end of a job and the note that its event is recorded. */
const endsJob = (message: Buffer) => message.includes("endedAt") && message.includes("eventDueAt");
const notesEvent = (message: Buffer) => !message.includes("endedAt") && message.includes("eventDueAt");
const isFor = (collection: string) => (message: Buffer) => message.includes(collection);
const deaths = [
  ["the job has ended", endsJob, true],
  ["its endpoints are not read", isFor("webhookEndpoints"), false],
  ["the event is stored", isFor("webhookEvents"), true],
  ["no delivery is stored", isFor("webhookDeliveries"), false],
  ["a delivery is stored", isFor("webhookDeliveries"), true],
  ["the event is not noted as recorded", notesEvent, false],
] as const;

const authorized = ({ key }: Owner) => ({ headers: { authorization: `Bearer ${key}` } });

const poll = async ({ baseUrl }: Client, owner: Owner, id: string): Promise<Job> =>
  (await (await fetch(`${baseUrl}/v1/jobs/${id}`, authorized(owner))).json()) as Job;

test("workers and an API killed at each step from the end of a job to its recorded event: each arrives, under one id", async () => {
  const stores = await testStores();
  const env = { ...(await webhookEnvironment()), ...shortTimeouts };
  const { client } = await spawnApi(stores, env);
  const owner = await webhookAccount(client);
  const receiver = await startReceiver();
  const urls = [`${receiver.url}/a`, `${receiver.url}/b`];
  for (const url of urls) await owner.createEndpoint(url);
  const ids: string[] = [];
  const submit = async (at: Client) => {
    const body = JSON.stringify(asking(localModel));
    const headers = { ...authorized(owner).headers, "content-type": "application/json", prefer: "respond-async" };
    const answer = await eventually(async () => {
      // The API may not know the new worker yet.
      const tried = await fetch(`${at.baseUrl}/v1/chat/completions`, { method: "POST", headers, body });
      return tried.status === 202 && tried;
    });
    const { id } = (await answer.json()) as Job;
    ids.push(id);
    return id;
  };

  for (const [name, isCounted, executed] of deaths) {
    const deadly = await deadlyMongo(stores, executed);
    const worker = await spawnWorker(deadly.stores, { ...env, WORKER_POOLS: "chat" });
    deadly.death.arm(() => worker.kill("SIGKILL"), isCounted);
    await ready(client);
    const id = await submit(client);
    await worker.exited;
    expect([name, await poll(client, owner, id)]).toMatchObject([name, { status: "completed" }]);
  }

  // Maintenance records what they have left, and dies as well.
  const maintenance = await deadlyMongo(stores, false);
  const recorder = await spawnWorker(maintenance.stores, { ...env, WORKER_POOLS: "maintenance" });
  maintenance.death.arm(() => recorder.kill("SIGKILL"), isFor("webhookDeliveries"));
  await recorder.exited;

  const waiting = await spawnWorker(stores, { ...env, WORKER_POOLS: "chat" });
  const deadly = await deadlyMongo(stores, false);
  const api = await spawnApi(deadly.stores, env);
  await ready(api.client);
  waiting.kill("SIGSTOP");
  const cancelled = await submit(api.client);
  deadly.death.arm(() => api.kill("SIGKILL"), isFor("webhookDeliveries"));
  const cancel = { method: "POST", ...authorized(owner) };
  await expect(fetch(`${api.client.baseUrl}/v1/jobs/${cancelled}/cancel`, cancel)).rejects.toThrow("fetch failed");
  await api.exited;
  expect(await poll(client, owner, cancelled)).toMatchObject({ status: "cancelled" });
  expect(receiver.received).toEqual([]);

  await spawnWorker(stores, env);
  await eventually(async () => {
    const delivered = await owner.deliveries("&status=delivered");
    return delivered.length === urls.length * ids.length;
  }, 120_000);
  const webhookIds = Map.groupBy(
    receiver.received,
    ({ path, body }) => `${path} ${(JSON.parse(body) as { data: Job }).data.id}`,
  );
  expect([...webhookIds.keys()].toSorted()).toEqual(
    ["/a", "/b"].flatMap((path) => ids.map((id) => `${path} ${id}`)).toSorted(),
  );
  for (const each of webhookIds.values()) expect(new Set(each.map(({ id }) => id)).size).toBe(1);
  for (const { body } of receiver.received) {
    const { type, data } = JSON.parse(body) as { type: string; data: Job };
    const job = await poll(client, owner, data.id);
    expect([type, data]).toEqual([`job.${job.status}`, job]);
  }
});
