import { once } from "node:events";
import type { Redis } from "ioredis";
import { expect, onTestFinished, test, vi } from "vitest";
import { noCapacity } from "#errors";
import type { Reply } from "#jobs";
import type { Clock } from "#platform/clock";
import { rhythm } from "#platform/concurrency/rhythm";
import { type Frame, fromField, limitBytes, pauseMs, toField } from "../../shared/jobs/frames.ts";
import { bothEnds, collect, replyKey as key, openReader, openWriter } from "../support/jobs-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { testStores } from "../support/servers.ts";
import { eventually } from "../support/service.ts";

const onGone = () => {};
type Paced = ReturnType<typeof collect> & { readonly reply: Reply };

/** Queries on the writer's connection, to count what it has sent. The first entry is the lease. */
async function entriesWritten(redis: Redis): Promise<number> {
  const info = (await redis.xinfo("STREAM", key)) as unknown[];
  return (info[info.indexOf("entries-added") + 1] as number) - 1;
}

/** Holds back what waits for a beat. Returns the function that makes the beat. */
function holdBeats() {
  const waiting = new Set<() => void>();
  const soon = vi.spyOn(rhythm, "soon").mockImplementation((run) => void waiting.add(run));
  onTestFinished(() => soon.mockRestore());
  return () => {
    const runs = [...waiting];
    waiting.clear();
    for (const run of runs) run();
  };
}

/** A stream without a reader, and the frames of each of its entries. */
async function unread() {
  const { replies, redis } = await openWriter(await testStores());
  await redis.xadd(key, "*", "lease", "1");
  const entries = async (of = key): Promise<Frame[][]> => {
    const [, ...written] = await redis.xrange(of, "-", "+");
    return written.map(([, fields]) =>
      fields.flatMap((name, at) => (at % 2 === 0 ? (fromField(name, fields[at + 1] as string) ?? []) : [])),
    );
  };
  return { replies, redis, entries };
}

const textOf = (frames: readonly Frame[], requestId: string) =>
  frames.map((frame) => (frame.requestId === requestId ? frame.data : "")).join("");

test("the frames of calls that run side by side arrive in their order", async () => {
  const { reader, replies } = await bothEnds();
  const calls = Array.from({ length: 20 }, (_, i) => `req_${i}`);
  const collected = calls.map((id) => collect(reader, id));
  await Promise.all(
    calls.map(async (id) => {
      const reply = replies.open("api_test", id, onGone);
      for (let i = 0; i < 20; i++) {
        await reply.write(`${id}:${i} `, i);
        if (i % 7 === 0) await reply.flush();
      }
      expect(await reply.final("end", { cost: "5", tokens: 3 })).toBe(true);
    }),
  );
  for (const [i, { frames, ended, text }] of collected.entries()) {
    expect(await ended).toMatchObject({
      kind: "final",
      data: expect.stringMatching(/end$/),
      outcome: { cost: "5", tokens: 3 },
    });
    expect(frames.map(({ seq }) => seq)).toEqual(frames.keys().toArray());
    expect(text()).toBe(`${Array.from({ length: 20 }, (_, n) => `req_${i}:${n} `).join("")}end`);
  }
});

test("announced headers go with the first frame alone, as last announced", async () => {
  const { reader, replies } = await bothEnds();
  const { frames, ended } = collect(reader, "req_1");
  const reply = replies.open("api_test", "req_1", onGone);
  reply.announce({ "x-ignored-params": "a" });
  reply.announce({ "x-ignored-params": "b" });
  await reply.write("text", 1);
  await reply.flush();
  reply.announce({ "x-ignored-params": "late" });
  await reply.final("end", { cost: "5" });
  await ended;
  expect(frames.map(({ outcome }) => outcome)).toEqual([{ headers: { "x-ignored-params": "b" } }, { cost: "5" }]);

  const whole = collect(reader, "req_2");
  const other = replies.open("api_test", "req_2", onGone);
  other.announce({ "x-ignored-params": "a" });
  await other.final("all", { cost: "5" });
  expect((await whole.ended).outcome).toEqual({ cost: "5", headers: { "x-ignored-params": "a" } });
});

test("the first text is sent at once, later texts are gathered", async () => {
  const clock = createManualClock();
  const beat = holdBeats();
  const { reader, replies, redis } = await bothEnds({ writer: clock });
  const { frames } = collect(reader, "req_1");
  const reply = replies.open("api_test", "req_1", onGone);
  await reply.write("a", 1);
  await eventually(() => reply.delivered() === 1);
  await reply.write("b", 2);
  await reply.write("c", 3);
  expect(await entriesWritten(redis)).toBe(1);
  beat();
  await eventually(() => reply.delivered() === 3);
  await eventually(() => frames.length === 2);
  expect(frames.map(({ data }) => data)).toEqual(["a", "bc"]);
  expect(clock.pending()).toBe(0);
});

test("several calls' writes of one turn are one entry, and so are their gathered texts; a first text does not wait for it", async () => {
  const beat = holdBeats();
  const { reader, replies, redis } = await bothEnds();
  const calls = ["req_1", "req_2", "req_3"].map((id) => ({
    ...collect(reader, id),
    reply: replies.open("api_test", id, onGone),
  }));
  const delivered = () => calls.map(({ reply }) => reply.delivered());
  for (const { reply } of calls) await reply.write("a", 1);
  await eventually(() => delivered().every((mark) => mark === 1));
  expect(await entriesWritten(redis)).toBe(1);

  for (const text of ["b", "c"]) for (const { reply } of calls) await reply.write(text, 2);
  const late = replies.open("api_test", "req_late", onGone);
  await late.write("a", 1);
  await eventually(() => late.delivered() === 1);
  expect(delivered()).toEqual([1, 1, 1]);
  expect(await entriesWritten(redis)).toBe(2);
  beat();
  await eventually(() => delivered().every((mark) => mark === 2));
  expect(await entriesWritten(redis)).toBe(3);

  await Promise.all(calls.map(({ reply }) => reply.final("d", {})));
  expect(await entriesWritten(redis)).toBe(4);
  for (const { ended, frames } of calls) {
    await ended;
    expect(frames.map(({ data }) => data)).toEqual(["a", "bc", "d"]);
  }
});

test("an entry has at most 256 KB; a longer text has its own, and harms no other call", async () => {
  const { replies, entries } = await unread();
  const text = "€".repeat(20_000);
  const calls = Array.from({ length: 20 }, (_, i) => `req_${i}`);
  await Promise.all([
    replies.open("api_test", "req_long", onGone).error(noCapacity("x".repeat(limitBytes))),
    ...calls.map(async (id) => {
      const reply = replies.open("api_test", id, onGone);
      await reply.write(text, 1);
      await reply.final(text.repeat(6), {});
    }),
  ]);
  const written = await entries();
  for (const entry of written.filter((each) => each.length > 1)) {
    const bytes = entry.flatMap(toField).reduce((sum, each) => sum + Buffer.byteLength(each), 0);
    expect(bytes).toBeLessThanOrEqual(limitBytes);
  }
  expect(written.some((entry) => entry.length > 1)).toBe(true);
  for (const id of calls) expect(textOf(written.flat(), id)).toBe(text.repeat(7));
  expect(textOf(written.flat(), "req_long").length).toBeGreaterThan(limitBytes);
});

test("a large answer does not hold up the other calls", async () => {
  const { replies, entries } = await unread();
  const large = replies.open("api_test", "req_large", onGone).final("x".repeat(100 * limitBytes), {});
  await replies.open("api_test", "req_small", onGone).final("y", {});
  const before = await entries();
  expect(before.length).toBeLessThan(10);
  expect(await large).toBe(true);
  expect(textOf((await entries()).flat(), "req_large")).toHaveLength(100 * limitBytes);
});

test("a call that writes faster than Redis takes it has to wait, the others do not", async () => {
  const { replies } = await unread();
  const fast = replies.open("api_test", "req_fast", onGone);
  const other = replies.open("api_test", "req_other", onGone);
  const [blocked] = await Promise.all([
    fast.write("x".repeat(100 * limitBytes), 1).then(() => fast.delivered()),
    other.write("y", 1).then(() => expect(fast.delivered()).toBe(0)),
  ]);
  expect(blocked).toBe(1);
});

test("the last frame carries the gathered text, and no timer remains", async () => {
  const clock = createManualClock();
  const { reader, replies } = await bothEnds({ writer: clock });
  const { frames, ended } = collect(reader, "req_1");
  const reply = replies.open("api_test", "req_1", onGone);
  await reply.write("a", 1);
  await reply.write("b", 2);
  await reply.error(noCapacity("unavailable"), { tokens: 2 });
  await ended;
  expect(frames.map(({ kind, data }) => (kind === "error" ? JSON.parse(data) : data))).toEqual([
    "a",
    "b",
    noCapacity("unavailable").fields(),
  ]);
  expect(reply.delivered()).toBe(2);
  expect(clock.pending()).toBe(0);
});

test("a large answer comes in parts that fit a frame, an error never", async () => {
  const { reader, replies, commands } = await bothEnds();
  const answer = collect(reader, "req_1");
  const text = "€😀".repeat(200_000);
  await replies.open("api_test", "req_1", onGone).final(text, {});
  await answer.ended;
  expect(answer.text()).toBe(text);
  for (const { data } of answer.frames) expect(Buffer.byteLength(data)).toBeLessThanOrEqual(limitBytes);

  const failed = collect(reader, "req_2");
  await replies.open("api_test", "req_2", onGone).error(noCapacity("x".repeat(limitBytes)));
  expect(JSON.parse((await failed.ended).data)).toMatchObject({ code: "no_capacity" });
  expect(failed.frames).toHaveLength(1);
  expect(await commands.exists(key)).toBe(1);
});

test("while its caller does not read, a call writes no more, and only it; a pause that is not repeated ends by itself", async () => {
  const clock = createManualClock();
  const { reader, replies } = await bothEnds({ writer: clock });
  const [slow, other] = ["req_slow", "req_other"].map((id) => ({
    ...collect(reader, id),
    reply: replies.open("api_test", id, onGone),
  })) as [Paced, Paced];
  const text = "x".repeat(64 * 1024);
  slow.reply.pause();
  let written = 0;
  const writing = (async () => {
    for (; written < 40; written++) await slow.reply.write(text, written);
    return slow.reply.final("end", { cost: "5" });
  })();
  await other.reply.final("end", { cost: "5" });
  await other.ended;
  expect(slow.frames).toEqual([]);
  // The waiting data of one call is bounded.
  expect(written).toBeLessThan(8);

  for (let second = 0; second < 2 * (pauseMs / 1_000); second++) {
    clock.advance(1_000);
    slow.reply.pause();
  }
  expect(slow.frames).toEqual([]);
  slow.reply.resume();
  await eventually(() => slow.frames.length > 0);
  slow.reply.pause();
  clock.advance(pauseMs);
  expect(await writing).toBe(true);
  await slow.ended;
  expect(slow.text()).toBe(`${text.repeat(40)}end`);
});

test("an instance without a reply key is gone, and is notified once", async () => {
  const { replies } = await openWriter(await testStores(), createManualClock());
  let gone = 0;
  const reply = replies.open("api_gone", "req_1", () => gone++);
  await reply.write("a", 1);
  expect(await reply.flush()).toBe(false);
  await reply.write("b", 2);
  expect(await reply.final("c", {})).toBe(false);
  expect(gone).toBe(1);
  expect(reply.delivered()).toBe(0);
  expect(await replies.instanceResponds("api_gone")).toBe(false);
  expect(await replies.late("api_gone", "req_1", noCapacity("died"))).toBe(false);
});

test("a stream counts as delivered up to the last text that Redis took", async () => {
  const { replies, redis } = await bothEnds({ reader: createManualClock() });
  const reply = replies.open("api_test", "req_1", onGone);
  await reply.write("a", 1);
  await reply.write("b", 4);
  expect(await reply.flush()).toBe(true);
  expect(reply.delivered()).toBe(4);
  await redis.del(key);
  await reply.write("c", 9);
  expect(await reply.flush()).toBe(false);
  expect(reply.delivered()).toBe(4);
});

async function afterReconnect(clock: Clock) {
  const stores = await testStores();
  const { replies, redis } = await openWriter(stores, clock);
  redis.disconnect(true);
  await once(redis, "ready");
  return { stores, replies };
}

test("after a reconnect a missing reply key is waited for: the frame comes when it is made again", async () => {
  const clock = createManualClock();
  const { stores, replies } = await afterReconnect(clock);
  const { reader } = await openReader(stores);
  const { ended, text } = collect(reader, "req_1");
  let gone = false;
  const reply = replies.open("api_test", "req_1", () => {
    gone = true;
  });
  await reply.write("a", 1);
  const sent = reply.final("b", {});
  await eventually(() => clock.pending() > 0);
  expect(await replies.instanceResponds("api_test")).toBe(true);
  await reader.start();
  clock.advance(100);
  expect(await sent).toBe(true);
  await ended;
  expect(text()).toBe("ab");
  expect(gone).toBe(false);
});

test("10 s after a reconnect a missing reply key means that the instance is gone", async () => {
  const clock = createManualClock();
  const { replies } = await afterReconnect(clock);
  let gone = 0;
  const sent = replies.open("api_test", "req_1", () => gone++).final("a", {});
  const late = replies.late("api_test", "req_1", noCapacity("died"));
  await eventually(() => clock.pending() === 2);
  clock.advance(10_000);
  await eventually(() => clock.pending() === 2);
  expect(gone).toBe(0);
  clock.advance(100);
  expect(await sent).toBe(false);
  expect(await late).toBe(false);
  expect(gone).toBe(1);
  expect(await replies.instanceResponds("api_test")).toBe(false);
});

test("when Redis refuses a frame, the write rejects and nothing follows", async () => {
  const { replies, redis } = await openWriter(await testStores());
  await redis.set("reply:api_other", "not a stream");
  const reply = replies.open("api_other", "req_1", onGone);
  await reply.write("a", 1);
  await expect(reply.flush()).rejects.toThrow("WRONGTYPE");
  await redis.del("reply:api_other");
  await redis.xadd("reply:api_other", "*", "lease", "1");
  await expect(reply.write("b", 2)).rejects.toThrow("WRONGTYPE");
  await expect(reply.final("c", {})).rejects.toThrow("WRONGTYPE");
  expect(await redis.xlen("reply:api_other")).toBe(1);
});

test("a refusal ends only the calls whose frames were in it, and nothing of them follows", async () => {
  const { replies, redis, entries } = await unread();
  await redis.set("reply:api_other", "not a stream");
  const long = replies.open("api_other", "req_1", onGone);
  // Its second frame does not fit the first entry.
  const text = "x".repeat(60_000);
  const ends = Promise.allSettled([
    replies.open("api_other", "req_2", onGone).final("a", {}),
    Promise.all([long.write(text, 1), long.final(text, {})]),
    replies.open("api_test", "req_3", onGone).final("a", {}),
  ]);
  await new Promise(setImmediate);
  // Send it after the refused write, and before the next one.
  await redis.pipeline().del("reply:api_other").xadd("reply:api_other", "*", "lease", "1").exec();
  expect((await ends).map(({ status }) => status)).toEqual(["rejected", "rejected", "fulfilled"]);
  expect(await replies.open("api_other", "req_4", onGone).final("a", {})).toBe(true);
  expect((await entries("reply:api_other")).flat().map(({ requestId }) => requestId)).toEqual(["req_4"]);
});

test("the outcome of a call that was not run is an unnumbered frame", async () => {
  const { reader, replies } = await bothEnds();
  const { ended } = collect(reader, "req_1");
  expect(await replies.late("api_test", "req_1", noCapacity("died"), { answerLost: true })).toBe(true);
  expect(await ended).toMatchObject({ seq: -1, kind: "error", outcome: { answerLost: true } });
});
