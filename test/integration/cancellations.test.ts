import { expect, onTestFinished, test } from "vitest";
import { createCancellations } from "#jobs";
import { systemClock } from "#platform/clock";
import { connect, log, openReader } from "../support/jobs-setup.ts";
import { ownServers, type Stores, testStores } from "../support/servers.ts";
import { eventually } from "../support/service.ts";

async function openWorker(stores: Stores) {
  const [subscriber, commands] = await Promise.all([connect(stores, "subscribing"), connect(stores, "waiting")]);
  const cancellations = createCancellations({ subscriber, commands, clock: systemClock, log });
  onTestFinished(() => cancellations.stop());
  await cancellations.start();
  return { cancellations, subscriber, commands };
}

/** Counts the cancellations of each watched call. */
function counting() {
  const counts = new Map<string, number>();
  return { counts, count: (id: string) => () => void counts.set(id, (counts.get(id) ?? 0) + 1) };
}

test("a call that has not begun is found to be cancelled, until its deadline", async () => {
  const stores = await testStores();
  const [{ reader }, { cancellations, commands }] = await Promise.all([openReader(stores), openWorker(stores)]);
  await reader.notify("cancelled", "req_1", 60_000);
  expect(await cancellations.notice("req_1")).toBe("cancelled");
  expect(await cancellations.notice("req_2")).toBeUndefined();
  expect(await commands.ttl("cancelled:req_1")).toBe(60);
  // A cancellation past the call's deadline is still stored for a moment.
  await reader.notify("cancelled", "req_3", -5);
  expect(await cancellations.notice("req_3")).toBe("cancelled");
});

test("a running call is notified once, and only it", async () => {
  const stores = await testStores();
  const [{ reader }, { cancellations }] = await Promise.all([openReader(stores), openWorker(stores)]);
  const { counts, count } = counting();
  cancellations.watch("req_1", count("req_1"));
  cancellations.watch("req_2", count("req_2"));
  const stop = cancellations.watch("req_ended", count("req_ended"));
  stop();
  await reader.notify("cancelled", "req_ended", 1_000);
  await reader.notify("cancelled", "req_1", 1_000);
  await eventually(() => counts.size > 0);
  expect(Object.fromEntries(counts)).toEqual({ req_1: 1 });
});

test("a cancellation while the subscriber is disconnected is found when it is back", async () => {
  const stores = await testStores();
  const [{ reader }, { cancellations, subscriber }] = await Promise.all([openReader(stores), openWorker(stores)]);
  const { counts, count } = counting();
  for (const id of ["req_1", "req_2", "req_3"]) cancellations.watch(id, count(id));
  subscriber.disconnect();
  await eventually(() => subscriber.status === "end");
  await reader.notify("cancelled", "req_1", 60_000);
  expect(counts.size).toBe(0);
  await subscriber.connect();
  await eventually(() => counts.has("req_1"));
  // The reader listens again.
  await reader.notify("cancelled", "req_2", 60_000);
  await eventually(() => counts.has("req_2"));
  expect(Object.fromEntries(counts)).toEqual({ req_1: 1, req_2: 1 });
});

test("a cancellation that Redis did not store is an error, and can be repeated when Redis is back", async () => {
  const { redis, stores } = await ownServers({ redis: true });
  const [{ reader }, { cancellations }] = await Promise.all([openReader(stores), openWorker(stores)]);
  const { counts, count } = counting();
  cancellations.watch("req_1", count("req_1"));
  await redis.stop();
  await expect(reader.notify("cancelled", "req_1", 60_000)).rejects.toThrow(/writeable|closed|retries/);
  await redis.start();
  await eventually(() =>
    reader.notify("cancelled", "req_1", 60_000).then(
      () => true,
      () => false,
    ),
  );
  await eventually(() => counts.has("req_1"));
});
