import { expect, test } from "vitest";
import { collect, openReader, openWriter } from "../support/jobs-setup.ts";
import { breakable } from "../support/redis-proxy.ts";
import { ownServers, testStores } from "../support/servers.ts";
import { eventually } from "../support/service.ts";

const onGone = () => {};

test("a connection that breaks in the middle of an answer loses no frame", async () => {
  const stores = await testStores();
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
  // The answers were lost, not the frames: they were written again, and distinguished from the first by their count.
  expect(collected.some(({ twice }) => twice.length > 0)).toBe(true);
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
