import { execFile } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { alone, never, said, startCounting } from "../support/counting-setup.ts";

/** 1,250 tokens, or 2,500 estimated from its bytes. */
const text = "a".repeat(10_000);
const counted = alone + 1_250;
const byBytes = alone + 2_500;

test("all counts share one thread, started at first use", async () => {
  const { counting, threads } = startCounting();
  expect(threads).toHaveLength(0);
  await Promise.all([counting.estimate(said(text), never), counting.estimate(said(text), never)]);
  expect(await counting.estimate(said(text), never)).toBe(counted);
  expect(threads).toHaveLength(1);
});

test("many at once are answered in their order", async () => {
  const { counting } = startCounting();
  const order: number[] = [];
  const words = Array.from({ length: 50 }, (_, i) => i + 1);
  const answers = words.map((count) =>
    counting.estimate(said("hello".concat(" hello".repeat(count - 1))), never).then((tokens) => {
      order.push(count);
      return tokens - alone;
    }),
  );
  expect(await Promise.all(answers)).toEqual(words);
  expect(order).toEqual(words);
});

test("prompts beyond the waiting limit are answered by their bytes, at once", async () => {
  const { counting, clock } = startCounting();
  const short = "a".repeat(80);
  const waiting = Array.from({ length: 256 }, () => counting.estimate(said(short), never));
  expect(await counting.estimate(said(short), never)).toBe(alone + 20);
  expect(clock.pending()).toBeGreaterThan(256);
  expect(new Set(await Promise.all(waiting))).toEqual(new Set([alone + 10]));
});

test("a count that takes too long is answered by its bytes, its thread is ended, and the next gets a new one", async () => {
  const { counting, clock, threads, begun, log } = startCounting();
  await counting.estimate(said("hi"), never);
  const secret = "sesame ".repeat(20_000);
  const answer = counting.estimate(said(secret), never);
  await begun();
  const ended = threads[0] && once(threads[0], "exit");
  clock.advance(999);
  expect(clock.pending()).toBe(1);
  clock.advance(1);
  expect(await answer).toBe(alone + 35_000);
  await ended;
  expect(await counting.estimate(said(text), never)).toBe(counted);
  expect(threads).toHaveLength(2);
  expect(log()).toContain("timeout");
  expect(log()).not.toContain("sesame");
});

test("a prompt that waits too long for its turn is answered by its bytes", async () => {
  const { counting, clock, begun } = startCounting();
  const answers = [counting.estimate(said(text), never), counting.estimate(said(text), never)];
  await begun();
  clock.advance(4_999);
  expect(clock.pending()).toBe(3);
  clock.advance(1);
  expect(clock.pending()).toBe(1);
  expect(await Promise.all(answers)).toEqual([byBytes, byBytes]);
});

test("a thread that does not get ready is ended", async () => {
  const { counting, clock, begun, log } = startCounting();
  const answer = counting.estimate(said(text), never);
  await begun();
  clock.advance(10_000);
  expect(await answer).toBe(byBytes);
  await expect.poll(log).toContain("timeout");
  expect(await counting.estimate(said(text), never)).toBe(counted);
});

test("a thread that dies makes one count an estimate, and is replaced", async () => {
  const { counting, threads, begun } = startCounting();
  await counting.estimate(said("hi"), never);
  const answer = counting.estimate(said(text), never);
  const next = counting.estimate(said(text), never);
  await begun();
  await threads[0]?.terminate();
  expect(await answer).toBe(byBytes);
  expect(await next).toBe(counted);
  expect(threads).toHaveLength(2);
});

test("an aborted count rejects at once, and the others get their own answers", async () => {
  const { counting, clock, threads, begun } = startCounting();
  await counting.estimate(said("hi"), never);
  const [running, waiting] = [new AbortController(), new AbortController()];
  const aborted = [
    counting.estimate(said(text), running.signal),
    counting.estimate(said(text), waiting.signal),
    counting.estimate(said(text), AbortSignal.abort("gone before")),
  ];
  const stays = counting.estimate(said("hello world"), never);
  await begun();
  let isAnswered = false;
  void stays.then(() => (isAnswered = true));
  running.abort("gone");
  waiting.abort("gone too");
  // The remaining limits are those of the running count and of the one that stays.
  expect(clock.pending()).toBe(2);
  const results = await Promise.allSettled(aborted);
  expect(isAnswered).toBe(false);
  expect(results).toMatchObject([{ reason: "gone" }, { reason: "gone too" }, { reason: "gone before" }]);
  expect(await stays).toBe(alone + 2);
  expect(threads).toHaveLength(1);
});

test("a thread that hangs on an aborted count is ended all the same", async () => {
  const { counting, clock, threads, begun } = startCounting();
  await counting.estimate(said("hi"), never);
  const gone = new AbortController();
  const answer = counting.estimate(said(text), gone.signal);
  await begun();
  gone.abort(new Error("gone"));
  await expect(answer).rejects.toThrow("gone");
  const ended = threads[0] && once(threads[0], "exit");
  clock.advance(1_000);
  await ended;
  expect(await counting.estimate(said(text), never)).toBe(counted);
});

test("closing ends the thread; running and later counts are answered by bytes", async () => {
  const { counting, clock, threads, begun } = startCounting();
  await counting.estimate(said("hi"), never);
  const exited = threads[0] && once(threads[0], "exit");
  const answers = [counting.estimate(said(text), never), counting.estimate(said(text), never)];
  await begun();
  await counting.close();
  await exited;
  expect(await Promise.all(answers)).toEqual([byBytes, byBytes]);
  expect(await counting.estimate(said(text), never)).toBe(byBytes);
  expect(threads).toHaveLength(1);
  expect(clock.pending()).toBe(0);
});

test("the thread does not keep the process alive", async () => {
  const of = (path: string) => JSON.stringify(new URL(`../../${path}`, import.meta.url).href);
  const script = `
    import { createCounting } from ${of("workers/counting/index.ts")};
    import { systemClock as clock } from ${of("shared/platform/clock.ts")};
    const counting = createCounting({ clock, log: { warn() {} } });
    const request = { messages: [{ role: "user", content: "hi" }] };
    console.log(await counting.estimate(request, new AbortController().signal));
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script]);
  expect(stdout.trim()).toBe(String(alone + 1));
});
