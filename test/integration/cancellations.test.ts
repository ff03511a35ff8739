import { expect, onTestFinished, test } from "vitest";
import { createCancellations } from "#jobs";
import { type Clock, systemClock } from "#platform/clock";
import { connect, expectExpiry, log, openReader } from "../support/jobs-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { ownServers, type Stores, testStores } from "../support/servers.ts";
import { eventually } from "../support/service.ts";

const longAgo = 0;

async function openWorker(stores: Stores, clock: Clock = systemClock) {
  const [subscriber, commands] = await Promise.all([connect(stores, "subscribing"), connect(stores, "waiting")]);
  const cancellations = createCancellations({ subscriber, commands, clock, log });
  onTestFinished(() => cancellations.stop());
  await cancellations.start();
  return { cancellations, subscriber, commands };
}

/** Counts the cancellations of each watched call. */
function counting() {
  const counts = new Map<string, number>();
  return { counts, count: (id: string) => () => void counts.set(id, (counts.get(id) ?? 0) + 1) };
}

// All databases of a server share its channels, so no other file uses these ids.
test("a call that has not begun is found to be cancelled, until its deadline", async () => {
  const stores = await testStores();
  const [{ reader }, { cancellations, commands }] = await Promise.all([openReader(stores), openWorker(stores)]);
  const begunAt = performance.now();
  await reader.notify("cancelled", "req_cancel_1", 60_000);
  expect(await cancellations.notice("req_cancel_1", longAgo)).toBe("cancelled");
  expect(await cancellations.notice("req_cancel_2", longAgo)).toBeUndefined();
  await expectExpiry(commands, "cancelled:req_cancel_1", 60_000, begunAt);
  // A cancellation past the call's deadline is still stored for a moment.
  // On a slow machine the moment may pass before it is looked for.
  await eventually(async () => {
    await reader.notify("cancelled", "req_cancel_3", -5);
    return (await cancellations.notice("req_cancel_3", longAgo)) === "cancelled";
  });
});

test("a notice that comes before its call begins is remembered, and Redis is asked only about older calls", async () => {
  const stores = await testStores();
  const clock = createManualClock();
  const [{ reader }, { cancellations, commands, subscriber }] = await Promise.all([
    openReader(stores),
    openWorker(stores, clock),
  ]);
  clock.advance(30_000);
  const acceptedAt = clock.now();
  const told = async (id: string) => {
    await reader.notify("disconnected", id, 60_000);
    await commands.del(`cancelled:${id}`);
    // The messages of a connection come in order.
    await reader.notify("cancelled", "req_marker", 1_000);
    await eventually(async () => (await cancellations.notice("req_marker", clock.now())) === "cancelled");
  };
  await told("req_cancel_1");
  expect(await cancellations.notice("req_cancel_1", acceptedAt)).toBe("disconnected");
  expect(await cancellations.notice("req_cancel_2", acceptedAt)).toBeUndefined();
  expect(await cancellations.notice("req_cancel_1", acceptedAt - 25_000)).toBeUndefined();
  clock.advance(59_000);
  expect(await cancellations.notice("req_cancel_1", clock.now())).toBe("disconnected");
  expect(await cancellations.notice("req_cancel_1", acceptedAt)).toBeUndefined();

  await reader.notify("cancelled", "req_cancel_3", 60_000);
  subscriber.disconnect();
  await eventually(() => subscriber.status === "end");
  expect(await cancellations.notice("req_cancel_3", clock.now())).toBe("cancelled");
  await subscriber.connect();
  expect(await cancellations.notice("req_cancel_3", clock.now())).toBe("cancelled");
});

test("a running call is notified once, and only it", async () => {
  const stores = await testStores();
  const [{ reader }, { cancellations }] = await Promise.all([openReader(stores), openWorker(stores)]);
  const { counts, count } = counting();
  cancellations.watch("req_cancel_1", count("req_cancel_1"));
  cancellations.watch("req_cancel_2", count("req_cancel_2"));
  const stop = cancellations.watch("req_ended", count("req_ended"));
  stop();
  await reader.notify("cancelled", "req_ended", 1_000);
  await reader.notify("cancelled", "req_cancel_1", 1_000);
  await eventually(() => counts.size > 0);
  expect(Object.fromEntries(counts)).toEqual({ req_cancel_1: 1 });
});

test("a cancellation while the subscriber is disconnected is found when it is back", async () => {
  const stores = await testStores();
  const [{ reader }, { cancellations, subscriber }] = await Promise.all([openReader(stores), openWorker(stores)]);
  const { counts, count } = counting();
  for (const id of ["req_cancel_1", "req_cancel_2", "req_cancel_3"]) cancellations.watch(id, count(id));
  subscriber.disconnect();
  await eventually(() => subscriber.status === "end");
  await reader.notify("cancelled", "req_cancel_1", 60_000);
  expect(counts.size).toBe(0);
  await subscriber.connect();
  await eventually(() => counts.has("req_cancel_1"));
  // The reader listens again.
  await reader.notify("cancelled", "req_cancel_2", 60_000);
  await eventually(() => counts.has("req_cancel_2"));
  expect(Object.fromEntries(counts)).toEqual({ req_cancel_1: 1, req_cancel_2: 1 });
});

test("a cancellation that Redis did not store is an error, and can be repeated when Redis is back", async () => {
  const { redis, stores } = await ownServers({ redis: true });
  const [{ reader }, { cancellations }] = await Promise.all([openReader(stores), openWorker(stores)]);
  const { counts, count } = counting();
  cancellations.watch("req_cancel_1", count("req_cancel_1"));
  await redis.stop();
  await expect(reader.notify("cancelled", "req_cancel_1", 60_000)).rejects.toThrow(/writeable|closed|retries/);
  await redis.start();
  await eventually(() =>
    reader.notify("cancelled", "req_cancel_1", 60_000).then(
      () => true,
      () => false,
    ),
  );
  await eventually(() => counts.has("req_cancel_1"));
});
