import { expect, test } from "vitest";
import { chatCodec } from "../../shared/formats/index.ts";
import { argumentsOf } from "../../workers/conversion/tool-calls.ts";
import { parseAnswer, parseLargeAnswer } from "../../workers/providers/http/untrusted-json.ts";

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

test("a provider's large JSON is scanned 1 MB a turn, and is not parsed if it has too many values", async () => {
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const text = (count: number) => Buffer.from(`{"a":"${"x".repeat(16 * 1024 * 1024)}","b":${objects(count)}}`);
  expect(Object.keys(await parseLargeAnswer(text(1)))).toEqual(["a", "b"]);
  expect(turns).toBeGreaterThanOrEqual(16);
  isOver = true;
  await expect(parseLargeAnswer(text(260_000))).rejects.toThrow("too large");
});
