import { expect, onTestFinished, test, vi } from "vitest";
import { type Clock, systemClock } from "#platform/clock";
import { toField } from "../../shared/jobs/frames.ts";
import { bothEnds, collect, expectExpiry, replyKey as key, openReader, openWriter } from "../support/jobs-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { testStores } from "../support/servers.ts";
import { eventually } from "../support/service.ts";

const onGone = () => {};

test("a frame of a call that no longer waits makes the reader cancel it, once a second", async () => {
  const clock = createManualClock();
  const { stores, replies, redis } = await bothEnds({ reader: clock });
  const { redis: subscriber } = await openWriter(stores);
  const heard: string[] = [];
  // All databases of the server share one channel.
  subscriber.on("message", (_channel, requestId: string) => {
    if (["req_stray", "req_mark", "req_over"].includes(requestId)) heard.push(requestId);
  });
  await subscriber.subscribe("cancel");
  const chunk = async (id: string) => {
    const reply = replies.open("api_test", id, onGone);
    await reply.write("x", 1);
    await reply.flush();
  };
  await chunk("req_stray");
  await chunk("req_stray");
  await replies.open("api_test", "req_over", onGone).final("x", {});
  await chunk("req_mark");
  await eventually(() => heard.includes("req_mark"));
  expect(heard).toEqual(["req_stray", "req_mark"]);
  expect(await redis.exists("cancelled:req_stray")).toBe(1);
  expect(await redis.exists("cancelled:req_over")).toBe(0);
  clock.advance(1_000);
  await chunk("req_stray");
  await eventually(() => heard.length === 3);
  expect(heard[2]).toBe("req_stray");
});

test("a receiver that stopped gets no frame", async () => {
  const { reader, replies } = await bothEnds();
  const heard: string[] = [];
  const stop = reader.expect("req_1", ({ data }) => heard.push(data));
  stop();
  const marked = collect(reader, "req_2");
  await replies.open("api_test", "req_1", onGone).final("x", {});
  await replies.open("api_test", "req_2", onGone).final("x", {});
  await marked.ended;
  expect(heard).toEqual([]);
});

test("the lease is renewed, and a missing stream is created again", async () => {
  const clock = createManualClock();
  const startedAt = performance.now();
  // A writer with a clock of its own never finds that Redis was stalled.
  const { reader, replies, redis } = await bothEnds({ reader: clock, writer: createManualClock() });
  await expectExpiry(redis, key, 30_000, startedAt);
  await redis.expire(key, 7);
  const renewedAt = performance.now();
  clock.advance(5_000);
  await eventually(async () => (await redis.pttl(key)) > 7_000);
  await expectExpiry(redis, key, 30_000, renewedAt);
  // The stream expires: writes in the meantime reach nobody.
  await redis.del(key);
  expect(await replies.instanceResponds("api_test")).toBe(false);
  const createdAt = performance.now();
  clock.advance(5_000);
  await eventually(() => replies.instanceResponds("api_test"));
  await expectExpiry(redis, key, 30_000, createdAt);
  const { ended } = collect(reader, "req_1");
  expect(await replies.open("api_test", "req_1", onGone).final("a", {})).toBe(true);
  expect((await ended).data).toBe("a");
});

test("a wait for a write that Redis lost ends with the next waiter's", async () => {
  const { reader, commands } = await bothEnds();
  vi.spyOn(commands, "xadd").mockResolvedValueOnce("1-1");
  const lost = reader.caughtUp();
  await reader.caughtUp();
  expect(await lost.then(() => "over")).toBe("over");
});

test("a stream that was created again is read, even on a server whose clock is behind", async () => {
  const clock = createManualClock();
  const { reader, replies, redis } = await bothEnds({ reader: clock });
  const before = collect(reader, "req_1");
  const future = Date.UTC(2200, 0);
  await redis.xadd(key, `${future}-0`, ...toField({ requestId: "req_1", seq: 0, kind: "final", data: "a" }));
  await before.ended;
  await redis.del(key);
  clock.advance(5_000);
  await eventually(() => replies.instanceResponds("api_test"));
  const { ended } = collect(reader, "req_2");
  expect(await replies.open("api_test", "req_2", onGone).final("b", {})).toBe(true);
  expect((await ended).data).toBe("b");
});

test("a reply stream that was missing interrupts the registration, however short that was", async () => {
  const clock = createManualClock();
  const { reader, redis } = await bothEnds({ reader: clock });
  const since = reader.registration.since() as number;
  await redis.expire(key, 15);
  clock.advance(1_000);
  await eventually(async () => (await redis.pttl(key)) > 15_000);
  expect(reader.registration.since()).toBe(since);
  await redis.del(key);
  clock.advance(1_000);
  await eventually(async () => (await redis.exists(key)) === 1);
  await eventually(() => (reader.registration.since() as number) > since);
});

test("after a pause in which an instance may have counted as dead, no frame is handed over before it knows", async () => {
  const { reader, replies } = await bothEnds();
  const asked = Promise.withResolvers<void>();
  const known = Promise.withResolvers<void>();
  reader.onLapse(() => {
    asked.resolve();
    return known.promise;
  });
  const frames: string[] = [];
  const stop = reader.expect("req_1", ({ data }) => frames.push(data));
  const { ended } = collect(reader, "req_2");
  const real = performance.now.bind(performance);
  const paused = vi.spyOn(performance, "now").mockImplementation(() => real() + 60_000);
  onTestFinished(() => paused.mockRestore());
  for (const requestId of ["req_1", "req_2"]) await replies.open("api_test", requestId, onGone).final("late", {});
  await asked.promise;
  expect(frames).toEqual([]);
  // The call was refunded.
  stop();
  known.resolve();
  expect((await ended).data).toBe("late");
  expect(frames).toEqual([]);
});

test("an instance that has not renewed its stream for six seconds gets no more work, and is dead after thirty", async () => {
  const clock = createManualClock();
  const { replies, redis } = await openWriter(await testStores(), clock);
  await redis.xadd(key, "*", "lease", "1");
  for (const [remainingMs, lives, isDead] of [
    // Longer than any renewal, so that a pause of the test does not make it too short.
    [120_000, true, false],
    [23_900, false, false],
    [0, false, true],
  ] as const) {
    clock.advance(60_000);
    await redis.pexpire(key, remainingMs);
    expect(await replies.instanceResponds("api_test")).toBe(lives);
    expect(await replies.instanceLives("api_test")).toBe(!isDead);
  }
  // A real lifetime cannot be held at the limit.
  const pttl = vi.spyOn(redis, "pttl").mockResolvedValueOnce(29_900);
  pttl.mockResolvedValueOnce(24_001).mockResolvedValueOnce(24_000);
  for (const responds of [true, true, false]) {
    clock.advance(60_000);
    expect(await replies.instanceResponds("api_test")).toBe(responds);
  }
});

test("after a takeover by a server with an older stream, entries from before and after the reader's connection are read", async () => {
  const stores = await testStores();
  const [{ reader, commands }, { replies, redis }] = await Promise.all([openReader(stores), openWriter(stores)]);
  await reader.start();
  const before = collect(reader, "req_1");
  const field = toField({ requestId: "req_1", seq: 0, kind: "final", data: "a" });
  await redis.xadd(key, `${Date.UTC(2200, 0)}-0`, ...field);
  await before.ended;
  const [early, late] = ["req_2", "req_3"].map((id) => collect(reader, id));
  await redis.multi().del(key).xadd(key, "1-1", "lease", "1").expire(key, 30).exec();
  expect(await replies.open("api_test", "req_2", onGone).final("b", {})).toBe(true);
  commands.disconnect(true);
  expect((await early?.ended)?.data).toBe("b");
  expect(await replies.open("api_test", "req_3", onGone).final("c", {})).toBe(true);
  expect((await late?.ended)?.data).toBe("c");
});

test("only entries that were handed over are trimmed", async () => {
  let now = 0;
  // Every read of this clock is a quarter of a second later, so that each batch is trimmed.
  const hasty: Clock = { ...systemClock, now: () => (now += 250) };
  const { reader, replies, redis } = await bothEnds({ reader: hasty });
  const calls = Array.from({ length: 50 }, (_, i) => `req_${i}`);
  const collected = calls.map((id) => collect(reader, id));
  await Promise.all(
    calls.map(async (id) => {
      const reply = replies.open("api_test", id, onGone);
      for (let i = 0; i < 20; i++) {
        await reply.write(`${i} `, i);
        await reply.flush();
      }
      await reply.final("end", {});
    }),
  );
  for (const { ended, frames } of collected) {
    await ended;
    expect(frames).toHaveLength(21);
  }
  await eventually(async () => (await redis.xlen(key)) === 0);
  expect(await redis.exists(key)).toBe(1);
});

test("a reader that stops leaves an empty stream for a moment, which says that everything was read", async () => {
  const { reader, redis } = await bothEnds();
  const stoppedAt = performance.now();
  await reader.stop();
  expect(await redis.xlen(key)).toBe(0);
  await expectExpiry(redis, key, 3_000, stoppedAt);
});
