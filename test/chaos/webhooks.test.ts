import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { restartEmpty, startProcesses } from "../support/chaos-setup.ts";
import { deadlyMongo } from "../support/deadly-wire.ts";
import { ownServers, testStores } from "../support/servers.ts";
import {
  type Client,
  eventually,
  ready,
  shortApiTimeout,
  shortTimeouts,
  spawnApi,
  spawnWorker,
} from "../support/service.ts";
import {
  type ReceivedWebhook,
  startReceiver,
  status,
  type WebhookReceiver,
  webhookEnvironment,
} from "../support/webhook-receiver.ts";
import { webhookAccount } from "../support/webhooks-setup.ts";

/** Longer than the claim of a worker that died. */
const withinMs = 120_000;
const paths = ["/a", "/b", "/c"];
const jobs = 5;

/** An account with three endpoints at a receiver that does not answer yet, and the jobs that it submits. */
async function startHeld(client: Client) {
  const receiver = await startReceiver();
  const held: ServerResponse[] = [];
  receiver.answerAlways((response) => void held.push(response));
  const customer = await webhookAccount(client);
  for (const path of paths) await customer.createEndpoint(`${receiver.url}${path}`);
  return {
    receiver,
    customer,
    submit: () => Promise.all(Array.from({ length: jobs }, () => customer.submitJob())),
    /** Resolves once each endpoint has an attempt in flight. */
    inFlight: () => eventually(() => held.length === paths.length),
    answer: () => {
      receiver.answerAlways(status(204));
      for (const response of held) response.writeHead(204).end();
    },
  };
}

/** The number of `webhook-id`s under which each event has arrived at each endpoint, once all are known to have arrived. */
async function idsOfArrived(
  { received }: WebhookReceiver,
  { deliveries }: Awaited<ReturnType<typeof webhookAccount>>,
): Promise<Record<string, number>> {
  await eventually(async () => {
    // The API may still be reconnecting.
    const found = await deliveries("&status=delivered").catch(() => []);
    return found.length === jobs * paths.length;
  }, withinMs);
  const eventOf = ({ path, body }: ReceivedWebhook) =>
    `${path} ${(JSON.parse(body) as { data: { id: string } }).data.id}`;
  const events = Map.groupBy(received, eventOf);
  return Object.fromEntries([...events].map(([event, each]) => [event, new Set(each.map(({ id }) => id)).size]));
}

/** Each of them once, whatever was sent more than once. */
const onceEach = (ids: readonly string[]) =>
  Object.fromEntries(paths.flatMap((path) => ids.map((id) => [`${path} ${id}`, 1])));

test("a worker killed while it sends: another one sends what was not answered, under the same ids", async () => {
  const stores = await testStores();
  const env = { ...(await webhookEnvironment()), ...shortTimeouts };
  const { worker, client } = await startProcesses(stores, env);
  const { receiver, customer, submit, inFlight, answer } = await startHeld(client);
  const ids = await submit();
  await inFlight();
  worker.kill("SIGKILL");
  await worker.exited;
  answer();
  await spawnWorker(stores, env);
  expect(await idsOfArrived(receiver, customer)).toEqual(onceEach(ids));
  // The attempts in flight were repeated.
  expect(receiver.received.length).toBe((jobs + 1) * paths.length);
});

test("a worker killed, and Redis emptied: maintenance enqueues the receivers again", async () => {
  const { stores } = await ownServers({ redis: true });
  const env = { ...(await webhookEnvironment()), ...shortTimeouts };
  const { worker, client } = await startProcesses(stores, env);
  const { receiver, customer, submit, inFlight, answer } = await startHeld(client);
  const ids = await submit();
  await inFlight();
  worker.kill("SIGKILL");
  await worker.exited;
  await restartEmpty(stores);
  answer();
  await spawnWorker(stores, env);
  expect(await idsOfArrived(receiver, customer)).toEqual(onceEach(ids));
});

test("MongoDB stopped while webhooks are sent: what was answered meanwhile is known afterwards", async () => {
  const { mongo, stores } = await ownServers({ mongo: true });
  const env = { ...(await webhookEnvironment()), ...shortApiTimeout };
  const { client } = await startProcesses(stores, env);
  const { receiver, customer, submit, inFlight, answer } = await startHeld(client);
  const ids = await submit();
  await inFlight();
  await mongo.stop();
  answer();
  await mongo.start();
  expect(await idsOfArrived(receiver, customer)).toEqual(onceEach(ids));
});

const claims = (message: Buffer) => message.includes("findAndModify") && message.includes("delivering");
const notesSuccess = (message: Buffer) => message.includes("lastSuccessAt");
const storesAttempt = (message: Buffer) => message.includes("webhookDeliveries") && message.includes("$push");
/** The message at which a sender dies, and how often its delivery arrives in all. */
const deaths = [
  ["the delivery is claimed", claims, true, 1],
  ["the success is not noted at the endpoint", notesSuccess, false, 2],
  ["the success is noted at the endpoint", notesSuccess, true, 2],
  ["the attempt is not stored", storesAttempt, false, 2],
  ["the attempt is stored", storesAttempt, true, 1],
] as const;

test("senders killed at each step of a delivery: each arrives, again only if its attempt was not stored", async () => {
  const stores = await testStores();
  const env = { ...(await webhookEnvironment()), ...shortTimeouts };
  const { client } = await spawnApi(stores, env);
  await spawnWorker(stores, { ...env, WORKER_POOLS: "chat,maintenance" });
  await ready(client);
  const customer = await webhookAccount(client);
  const receiver = await startReceiver();
  await customer.createEndpoint(receiver.url);
  const arrivals = () =>
    Object.entries(
      Object.groupBy(receiver.received, ({ body }) => (JSON.parse(body) as { data: { id: string } }).data.id),
    );

  const expected: Record<string, number> = {};
  for (const [, isCounted, executed, times] of deaths) {
    const deadly = await deadlyMongo(stores, executed);
    const sender = await spawnWorker(deadly.stores, { ...env, WORKER_POOLS: "webhooks" });
    deadly.death.arm(() => sender.kill("SIGKILL"), isCounted);
    expected[await customer.submitJob()] = times;
    await sender.exited;
  }
  await spawnWorker(stores, { ...env, WORKER_POOLS: "webhooks" });
  await eventually(async () => (await customer.deliveries("&status=delivered")).length === deaths.length, withinMs);
  expect(Object.fromEntries(arrivals().map(([job, each = []]) => [job, each.length]))).toEqual(expected);
  for (const [, each = []] of arrivals()) expect(new Set(each.map(({ id }) => id)).size).toBe(1);
});
