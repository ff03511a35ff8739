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
import { type Stores, testStores } from "../support/servers.ts";
import { eventually, shortApiTimeout, spawnApi } from "../support/service.ts";

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
  expect(await notes.find({ dead: { $exists: false }, next: 2 ** 32 + 1 })).toBeTruthy();
});
