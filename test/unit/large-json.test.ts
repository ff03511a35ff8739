import { expect, test, vi } from "vitest";
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

/** Cuts a text as bodies arrive: a block may end anywhere, even within a character. */
function blocksOf(text: string): readonly Buffer[] {
  const bytes = Buffer.from(text);
  return Array.from({ length: Math.ceil(bytes.length / blockBytes) }, (_, n) =>
    bytes.subarray(n * blockBytes, (n + 1) * blockBytes),
  );
}
const blockBytes = 1024 * 1024 + 1;

test("a provider's large JSON is scanned 256 KB a turn, and is not parsed if it has too many values", async () => {
  const { turns, stop } = countTurns();
  const text = (count: number) => blocksOf(`{"a":"${"x".repeat(16 * 1024 * 1024)}","b":${objects(count)}}`);
  expect(Object.keys(await parseLargeAnswer(text(1)))).toEqual(["a", "b"]);
  expect(turns()).toBeGreaterThanOrEqual(64);
  stop();
  await expect(parseLargeAnswer(text(260_000))).rejects.toThrow("too large");
});

const long = `é,]\\"[{${"x".repeat(20)}`.repeat(15_000);
const element = (n: number) => ({ index: n, text: long, vector: [1.5, -2e-3, { at: [n] }] });
const list = Array.from({ length: 8 }, (_, n) => element(n));
const largeAnswers: readonly (readonly [name: string, text: string])[] = [
  ["one list", JSON.stringify({ object: "list", data: list, usage: { total: 1 } })],
  [
    "lists with white space, short ones and others",
    JSON.stringify({ a: [1, [2]], data: list, none: [], more: list }, null, 2),
  ],
  ["a name that JavaScript knows", `{"__proto__":${JSON.stringify(list)},"a":1}`],
  ["a field twice", `{"data":${JSON.stringify(list)},"data":[3]}`],
  ["a field twice, the other way", `{"data":[3],"data":${JSON.stringify(list)}}`],
  ["a list inside an object", JSON.stringify({ data: { list } })],
  ["one long element", JSON.stringify({ data: [long.repeat(4)] })],
];

test.for(largeAnswers)(
  "a large answer is parsed piece by piece, and is what JSON.parse makes of it: %s",
  async ([, text]) => {
    const parsed = await parseLargeAnswer(blocksOf(text));
    const expected = JSON.parse(text) as object;
    expect(Object.keys(parsed)).toEqual(Object.keys(expected));
    expect(JSON.stringify(parsed) === JSON.stringify(expected)).toBe(true);
    expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype);
  },
);

const elements = list.map((each) => JSON.stringify(each));
const invalid: readonly (readonly [name: string, text: string])[] = [
  ["a comma at the end", `{"data":[${elements.join()},]}`],
  ["a comma at the beginning", `{"data":[,${elements.join()}]}`],
  ["two commas", `{"data":[${elements.join(",,")}]}`],
  ["a list that does not end", `{"data":[${elements.join()}`],
  ["a list that ends as an object", `{"data":[${elements.join()}}}`],
  ["an element that is no JSON", `{"data":[${elements.join()},{"a"]}`],
  ["another list after it", `{"data":[${elements.join()}],"a":[1],2]}`],
  ["text after it", `{"data":[${elements.join()}]} x`],
];

test.for(invalid)("a large answer that is no JSON is refused: %s", async ([, text]) => {
  expect(() => JSON.parse(text) as unknown).toThrow(SyntaxError);
  await expect(parseLargeAnswer(blocksOf(text))).rejects.toThrow("not a JSON object");
});

test("no more than about 256 KB of a large list is parsed at once", async () => {
  const text = JSON.stringify({ data: Array.from({ length: 400 }, () => "x".repeat(50_000)) });
  const parse = vi.spyOn(JSON, "parse");
  await parseLargeAnswer(blocksOf(text));
  const sizes = parse.mock.calls.map(([piece]) => piece.length);
  parse.mockRestore();
  expect(Math.max(...sizes)).toBeLessThan(310_000);
  expect(sizes.length).toBeGreaterThan(60);
});
