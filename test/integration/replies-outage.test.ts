import fc from "fast-check";
import { expect, test } from "vitest";
import { systemClock } from "#platform/clock";
import { collect, openReader, openWriter } from "../support/jobs-setup.ts";
import { breakable } from "../support/redis-proxy.ts";
import { ownServers, testStores } from "../support/servers.ts";
import { eventually } from "../support/service.ts";

const onGone = () => {};

test("a connection that breaks in the middle of an answer loses no frame", async () => {
  const stores = await testStores({ oneServer: true });
  const proxy = await breakable(stores);
  const [{ reader }, { replies }] = await Promise.all([openReader(stores), openWriter(proxy.stores)]);
  await reader.start();
  const calls = Array.from({ length: 10 }, (_, i) => `req_${i}`);
  const collected = calls.map((id) => collect(reader, id));
  proxy.breakNext();
  await Promise.all(
    calls.map(async (id) => {
      const reply = replies.open("api_test", id, onGone);
      await reply.write("a", 1);
      await reply.write("b", 2);
      expect(await reply.final("c", {})).toBe(true);
    }),
  );
  expect(proxy.breaks()).toBe(1);
  for (const { ended, text } of collected) {
    await ended;
    expect(text()).toBe("abc");
  }
  // Redis lost its replies, not the frames: they were written again, and their count marks them as repeated.
  expect(collected.some(({ twice }) => twice.length > 0)).toBe(true);
});

/** A text, perhaps followed by a broken connection, and by a turn of the event loop or a flush. */
const step = fc.record({
  length: fc.oneof({ weight: 9, arbitrary: fc.nat(50) }, { weight: 1, arbitrary: fc.nat(300_000) }),
  pause: fc.constantFrom("none", "none", "none", "turn", "turn", "flush"),
  breaks: fc.integer({ min: 0, max: 30 }).map((drawn) => (["all", "the next answer"] as const)[drawn]),
});

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

test("whatever calls write, and wherever their connection breaks, each text arrives whole, once and in order", async () => {
  const stores = await testStores({ oneServer: true });
  const proxy = await breakable(stores);
  const [{ replies }, ...readers] = await Promise.all([
    openWriter(proxy.stores),
    openReader(stores),
    openReader(stores, systemClock, "api_second"),
  ]);
  for (const { reader } of readers) await reader.start();
  let runs = 0;
  const call = async (id: string, at: number, steps: readonly Step[]) => {
    const { reader } = readers[at % readers.length] as (typeof readers)[number];
    const { ended, text } = collect(reader, id);
    const reply = replies.open(reader.instance, id, onGone);
    let written = "";
    const undelivered: number[] = [];
    for (const [i, { length, pause, breaks }] of steps.entries()) {
      const piece = `${i}:`.padEnd(length, "€");
      written += piece;
      await reply.write(piece, written.length);
      if (breaks === "all") proxy.cut();
      if (breaks === "the next answer") proxy.breakNext();
      if (pause === "turn") await new Promise(setImmediate);
      if (pause === "flush" && (await reply.flush())) undelivered.push(written.length - reply.delivered());
    }
    expect(await reply.final("end", { cost: "1" })).toBe(true);
    undelivered.push(written.length - reply.delivered());
    expect(undelivered.every((units) => units === 0)).toBe(true);
    await ended;
    expect(text()).toBe(`${written}end`);
  };
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(step, { maxLength: 40 }), { minLength: 1, maxLength: 12 }), async (calls) => {
      const run = runs++;
      await Promise.all(calls.map((steps, at) => call(`req_${run}_${at}`, at, steps)));
    }),
    { numRuns: 25 },
  );
});

test.each(["SIGTERM", "SIGKILL"] as const)(
  "Redis ended with %s and started again in the middle of streams: no frame is lost, doubled or out of order",
  async (signal) => {
    const { redis: server, stores } = await ownServers({ redis: true });
    const { reader } = await openReader(stores);
    const { replies } = await openWriter(stores);
    await reader.start();
    const calls = Array.from({ length: 10 }, (_, i) => `req_${i}`);
    const collected = calls.map((id) => collect(reader, id));
    const state = { writing: true };
    const written = calls.map(async (id) => {
      const reply = replies.open("api_test", id, onGone);
      let text = "";
      for (let i = 0; state.writing; i++) {
        text += `${i} `;
        await reply.write(`${i} `, i);
        await new Promise(setImmediate);
      }
      expect(await reply.final("end", {})).toBe(true);
      return `${text}end`;
    });
    const atLeast = (frames: number) => eventually(() => collected.every((each) => each.frames.length >= frames));
    await atLeast(3);
    await (signal === "SIGTERM" ? server.stop() : server.kill());
    const before = Math.max(...collected.map(({ frames }) => frames.length));
    await server.start();
    await atLeast(before + 3);
    state.writing = false;
    for (const [i, { ended, text }] of collected.entries()) {
      await ended;
      expect(text()).toBe(await written[i]);
    }
  },
);

test("a reader stops while Redis is unavailable", async () => {
  const { redis, stores } = await ownServers({ redis: true });
  const { reader, commands } = await openReader(stores);
  await reader.start();
  await redis.stop();
  await eventually(() => commands.status === "reconnecting");
  await reader.stop();
  expect(commands.status).not.toBe("ready");
});
