import { expect, test } from "vitest";
import { mockChunk } from "../support/mock-openai.ts";
import { errorOf, gate, startUpstreams } from "../support/upstreams-setup.ts";

const never = new Promise<void>(() => {});

test.each(["json", "stream"] as const)(
  "no headers within the first deadline (%s): the next upstream is asked",
  async (way) => {
    const { mocks, call, clock } = await startUpstreams(2);
    mocks[0].always({ beforeHeaders: never });
    const { record, ...ways } = call();
    const answer = ways[way]();
    const silent = await mocks[0].request(0);
    clock.advance(59_999);
    expect(record.attempts).toBe(1);
    clock.advance(1);
    await answer;
    expect(record).toMatchObject({ attempts: 2, upstream: "provider-1" });
    await silent.closed;
    expect(silent.aborted).toBe(true);
  },
);

test("headers without an event do not count as the first byte", async () => {
  const { mocks, call, clock } = await startUpstreams(1);
  mocks[0].always({ events: [": still here\n\n", mockChunk({}, "stop")], beforeEvent: { 1: never } });
  const answer = errorOf(call().stream());
  await mocks[0].request(0);
  clock.advance(60_000);
  expect(await answer).toMatchObject({ code: "upstream_timeout" });
});

test("silence between two items ends the stream with 504, and the connection is closed", async () => {
  const { mocks, call, clock } = await startUpstreams(1);
  mocks[0].always({ beforeEvent: { 2: never } });
  const items = await call().stream();
  await items.next();
  await items.next();
  const third = errorOf(items.next());
  clock.advance(19_999);
  expect(mocks[0].inFlight()).toBe(1);
  clock.advance(1);
  expect(await third).toMatchObject({ code: "upstream_timeout", status: 504 });
  const request = await mocks[0].request(0);
  await request.closed;
  expect(request.aborted).toBe(true);
  expect(await items.next()).toEqual({ done: true, value: undefined });
});

test("a slow reader does not count as silence of the upstream", async () => {
  const { call, clock } = await startUpstreams(1);
  const items = await call().stream();
  let seen = 0;
  for await (const _ of items) {
    seen++;
    clock.advance(20_001);
  }
  expect(seen).toBeGreaterThan(10);
});

test("every item restarts the silence deadline", async () => {
  const { mocks, call, clock } = await startUpstreams(1);
  const gates = Array.from({ length: 5 }, gate);
  mocks[0].always({ beforeEvent: Object.fromEntries(gates.map(({ promise }, index) => [index + 1, promise])) });
  const items = await call().stream();
  await items.next();
  for (const { resolve } of gates) {
    const next = items.next();
    clock.advance(19_000);
    resolve();
    expect((await next).done).toBe(false);
  }
});

test("the whole attempt has a deadline, however many items come", async () => {
  const { mocks, call, clock } = await startUpstreams(1);
  const gates = Array.from({ length: 30 }, gate);
  mocks[0].always({
    text: "word ".repeat(40),
    beforeEvent: Object.fromEntries(gates.map(({ promise }, index) => [index + 1, promise])),
  });
  const items = await call().stream();
  await items.next();
  const read = async () => {
    for (const { resolve } of gates) {
      const next = items.next();
      clock.advance(15_000);
      resolve();
      await next;
    }
  };
  expect(await errorOf(read())).toMatchObject({ code: "upstream_timeout" });
  expect(clock.now() - Date.UTC(2026, 0, 1)).toBe(300_000);
});

test.each(["json", "stream"] as const)(
  "a caller who leaves before the first byte (%s) closes the connection at once",
  async (way) => {
    const { mocks, call, clock } = await startUpstreams(2);
    mocks[0].always({ beforeHeaders: never });
    const caller = new AbortController();
    const reason = new Error("disconnected");
    const answer = errorOf(call("test/model", caller.signal)[way]());
    const request = await mocks[0].request(0);
    caller.abort(reason);
    expect(await answer).toBe(reason);
    await request.closed;
    expect(request.aborted).toBe(true);
    expect(mocks[1]?.requests).toHaveLength(0);
    expect(clock.pending()).toBe(0);
  },
);

test("a caller who disconnects during a stream closes the connection at once, also between two reads", async () => {
  const { mocks, call, clock } = await startUpstreams(1);
  mocks[0].always({ beforeEvent: { 2: never } });
  const caller = new AbortController();
  const items = await call("test/model", caller.signal).stream();
  const request = await mocks[0].request(0);
  const reason = new Error("disconnected");
  caller.abort(reason);
  await request.closed;
  expect(request.aborted).toBe(true);
  expect(await errorOf(items.next())).toBe(reason);
  expect(clock.pending()).toBe(0);
});

test("a deadline and a disconnected caller end the wait, though the work ignores its signal", async () => {
  const { call, clock, upstreams } = await startUpstreams(1);
  const caller = new AbortController();
  const ignoring = async () => {
    const begun = gate();
    const answer = upstreams.once(call("test/model", caller.signal).request, () => {
      begun.resolve();
      return never;
    });
    await begun.promise;
    return { answer: errorOf(answer) };
  };
  const late = await ignoring();
  clock.advance(60_000);
  expect(await late.answer).toMatchObject({ code: "upstream_timeout" });
  const disconnected = await ignoring();
  caller.abort(new Error("disconnected"));
  expect(await disconnected.answer).toBe(caller.signal.reason);
});

test("a reader that stops closes the connection", async () => {
  const { mocks, call } = await startUpstreams(1);
  mocks[0].always({ beforeEvent: { 3: never } });
  for await (const _ of await call().stream()) break;
  const request = await mocks[0].request(0);
  await request.closed;
  expect(request.aborted).toBe(true);
});
