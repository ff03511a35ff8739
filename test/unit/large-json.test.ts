import { expect, test } from "vitest";
import { chatCodec } from "../../shared/formats/index.ts";
import { nextTurnIfLarge } from "../../shared/platform/concurrency/next-turn.ts";
import { argumentsOf } from "../../workers/conversion/tool-calls.ts";
import { parseAnswer, parseLargeAnswer } from "../../workers/providers/http/untrusted-json.ts";

/** Counts turns of the event loop. */
function countTurns() {
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  return { turns: () => turns, stop: () => void (isOver = true) };
}

const objects = (count: number) => `{"a":[${Array(count).fill("{}").join()}]}`;

test("arguments of tool calls with too many values are refused, all of a request together", () => {
  const call = { id: "c", type: "function", function: { name: "a", arguments: objects(24_000) } };
  const ask = (calls: number) => {
    const body = { model: "m", messages: [{ role: "assistant", tool_calls: Array(calls).fill(call) }] };
    return chatCodec.parse(body, JSON.stringify(body).length);
  };
  expect(() => ask(4)).not.toThrow();
  expect(() => ask(5)).toThrow(/messages\[0\]\.tool_calls\[4\]\.function\.arguments: .* more than 100000 values/);
});

test("a provider's JSON with too many values is not parsed", () => {
  expect(Object.keys(parseAnswer(objects(200_000)))).toEqual(["a"]);
  expect(() => parseAnswer(objects(1_100_000))).toThrow("too large");
  expect(argumentsOf(objects(110_000))).toBeUndefined();
});

test("large work of many calls takes turns: others get theirs between any two pieces", async () => {
  const { turns, stop } = countTurns();
  const at: number[] = [];
  const piece = async () => {
    await nextTurnIfLarge(2 ** 20);
    at.push(turns());
  };
  await Promise.all(Array.from({ length: 5 }, piece));
  stop();
  expect(new Set(at).size).toBe(5);
});

test("between two pieces of large work others get as much time as the first one took", async () => {
  const busyMs = 20;
  const began: number[] = [];
  const piece = async () => {
    await nextTurnIfLarge(2 ** 20);
    const startedAt = performance.now();
    began.push(startedAt);
    while (performance.now() - startedAt < busyMs);
  };
  await Promise.all(Array.from({ length: 3 }, piece));
  const [first = 0, second = 0, third = 0] = began;
  // Timers may be a millisecond early.
  for (const passed of [second - first, third - second]) expect(passed).toBeGreaterThan(2 * busyMs - 2);
});

test("a provider's large JSON is scanned 1 MB a turn, and is not parsed if it has too many values", async () => {
  const { turns, stop } = countTurns();
  const text = (count: number) => Buffer.from(`{"a":"${"x".repeat(16 * 1024 * 1024)}","b":${objects(count)}}`);
  expect(Object.keys(await parseLargeAnswer(text(1)))).toEqual(["a", "b"]);
  expect(turns()).toBeGreaterThanOrEqual(16);
  stop();
  await expect(parseLargeAnswer(text(260_000))).rejects.toThrow("too large");
});
