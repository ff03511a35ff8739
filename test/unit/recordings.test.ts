import { once } from "node:events";
import { expect, test } from "vitest";
import { never, said, startCounting } from "../support/counting-setup.ts";
import { wav } from "../support/media-files.ts";

const recording = { bytes: wav(3), mime: "audio/wav", account: "one" };
/** The parser looks for a frame at every byte. */
const slow = { bytes: Buffer.alloc(512 * 1024, 0xff), mime: "audio/mpeg", account: "hostile", id: "upl_slow" };

test("a file that takes the parser too long has no length, and its thread is ended", async () => {
  const { counting, clock, threads, log } = startCounting();
  expect(await counting.secondsOf(recording, never)).toBe(3);
  const measured = counting.secondsOf(slow, never);
  const next = counting.secondsOf(recording, never);
  const ended = threads[0] && once(threads[0], "exit");
  clock.advance(999);
  expect(threads).toHaveLength(1);
  clock.advance(1);
  expect(await measured).toBeUndefined();
  await ended;
  expect(await next).toBe(3);
  expect(threads).toHaveLength(2);
  expect(log()).toContain("timeout");
  expect(await counting.secondsOf(slow, never)).toBeUndefined();
  expect(clock.pending()).toBe(0);
  expect(threads).toHaveLength(2);
});

test("a header that takes the parser too long is estimated by its bytes", async () => {
  const { counting, clock, begun } = startCounting();
  const header = Buffer.alloc(256 * 1024, 0xff).toString("base64");
  const parts = (count: number) =>
    Array.from({ length: count }, () => ({ type: "input_audio", input_audio: { data: header, format: "mp3" } }));
  const text = await counting.estimate(said("hi"), never);
  const counted = counting.estimate(said(parts(100)), never);
  await begun();
  clock.advance(1_000);
  expect(await counted).toBeGreaterThan(text + 100 * 160);
});

test("a hundred at once are measured one after another, and accounts take turns", async () => {
  const { counting, threads } = startCounting();
  const order: string[] = [];
  const measure = async (account: string) => {
    expect(await counting.secondsOf({ ...recording, account }, never)).toBe(3);
    order.push(account);
  };
  await Promise.all([...Array.from({ length: 98 }, () => measure("many")), measure("two"), measure("three")]);
  expect(order.indexOf("two")).toBeLessThan(3);
  expect(order.indexOf("three")).toBeLessThan(4);
  expect(order).toHaveLength(100);
  expect(threads).toHaveLength(1);
});

test("an account with too many is refused, and others are not", async () => {
  const { counting } = startCounting();
  const many = Array.from({ length: 128 }, () => counting.secondsOf(recording, never));
  const busy = expect.objectContaining({ status: 503, code: "no_capacity" }) as unknown;
  await expect(counting.secondsOf(recording, never)).rejects.toEqual(busy);
  expect(await counting.secondsOf({ ...recording, account: "two" }, never)).toBe(3);
  expect(new Set(await Promise.all(many))).toEqual(new Set([3]));
});

test("an aborted one rejects at once, and closing refuses waiting ones", async () => {
  const { counting, clock } = startCounting();
  expect(await counting.secondsOf(recording, never)).toBe(3);
  const aborted = new AbortController();
  const first = counting.secondsOf(slow, aborted.signal);
  const second = counting.secondsOf(recording, never);
  const results = Promise.allSettled([first, second]);
  aborted.abort(new Error("gone"));
  await expect(first).rejects.toThrow("gone");
  await counting.close();
  expect(await results).toMatchObject([{ reason: { message: "gone" } }, { reason: { status: 503 } }]);
  expect(clock.pending()).toBe(0);
});
