import { expect, test } from "vitest";
import { geminiArrayConverter, geminiConverter } from "../../workers/conversion/gemini/index.ts";
import {
  type Answer,
  assemble,
  estimate,
  framesOf,
  google,
  type Json,
  ours,
  streamed,
} from "../support/formats-gemini-assemble.ts";

const chunk = (delta: Json, fields: Json = {}): Json => ({ choices: [{ index: 0, delta, ...fields }] });
const ended: Json = chunk({}, { finish_reason: "stop" });

test("words go out as they come, and the end comes with what was used", () => {
  const stream = geminiConverter.streamFromChat(ours, {});
  expect(stream.write(chunk({ role: "assistant", content: "" }))).toBe("");
  expect(stream.write(chunk({ content: "Hi" }))).toBe(
    'data: {"candidates":[{"content":{"parts":[{"text":"Hi"}],"role":"model"},"index":0}],"modelVersion":"local/chat","responseId":"req_abc"}\n\n',
  );
  expect(stream.write(ended)).toBe("");
  expect(stream.write({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 2 } })).toBe("");
  expect(stream.usage()).toEqual({ prompt_tokens: 5, completion_tokens: 2 });
  expect(stream.outputBytes()).toBe(2);
  expect(framesOf(stream.end(estimate))).toEqual([
    {
      candidates: [{ content: { parts: [{ text: "" }], role: "model" }, finishReason: "STOP", index: 0 }],
      usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 2, totalTokenCount: 7 },
      modelVersion: "local/chat",
      responseId: "req_abc",
    },
  ]);
});

test("where the provider gave no usage, or nothing at all, there still is an end with the estimate", () => {
  expect(streamed([])).toMatchObject([
    { candidates: [{ index: 0, finishReason: "STOP" }], usageMetadata: { promptTokenCount: 7, totalTokenCount: 16 } },
  ]);
});

test("an end that was said stands, whatever comes after it", () => {
  const last = streamed([chunk({}, { finish_reason: "length" }), chunk({ content: "" }, { finish_reason: null })]);
  expect(last).toMatchObject([{ candidates: [{ finishReason: "MAX_TOKENS" }] }]);
});

test("calls go out whole with the end, whatever their server left out", () => {
  const call = (given: Json) => chunk({ tool_calls: [given] });
  const parts = (chunks: Json[]) => streamed([...chunks, ended]).at(-1)?.candidates[0]?.content.parts;
  const named = [
    call({ index: 0, id: "a", function: { arguments: '{"x":' } }),
    call({ index: 1, id: "b", function: { name: "two", arguments: "" } }),
    call({ index: 0, function: { name: "late", arguments: "1}" }, ...google("c2ln") }),
  ];
  expect(parts(named)).toEqual([
    { functionCall: { id: "a", name: "late", args: { x: 1 } }, thoughtSignature: "c2ln" },
    { functionCall: { id: "b", name: "two", args: {} } },
  ]);
  const bare = [
    call({ function: { name: "one", arguments: '{"a":' } }),
    call({ function: { arguments: "1}" } }),
    call({ function: { name: "two", arguments: { b: 2 } } }),
  ];
  expect(parts(bare)).toEqual([
    { functionCall: { id: "call_req_abc_0_0", name: "one", args: { a: 1 } } },
    { functionCall: { id: "call_req_abc_0_1", name: "two", args: { b: 2 } } },
  ]);
  const stream = geminiConverter.streamFromChat(ours, {});
  for (const each of named) expect(stream.write(each)).toBe("");
  expect(stream.outputBytes()).toBe('late{"x":1}two'.length);
});

test("without alt=sse the stream is one JSON array", () => {
  const stream = geminiArrayConverter.streamFromChat(ours, {});
  const text = [chunk({ content: "Hel" }), chunk({ content: "lo" }), ended].map((each) => stream.write(each)).join("");
  const all = JSON.parse(text + stream.end(estimate)) as Answer[];
  expect(all).toHaveLength(3);
  expect(assemble(all)).toMatchObject({ candidates: [{ parts: [{ text: "Hello" }], finishReason: "STOP" }] });
  expect(JSON.parse(geminiArrayConverter.streamFromChat(ours, {}).end(estimate))).toHaveLength(1);
  const native = geminiArrayConverter.native.stream(ours);
  expect(JSON.parse(native.write({ candidates: [] }) + native.write({ a: 1 }) + native.end(estimate))).toEqual([
    { candidates: [] },
    { a: 1 },
  ]);
  expect(geminiArrayConverter.native.stream(ours).end(estimate)).toBe("[]");
});

test("the provider's own events pass as they came, but for the model", () => {
  const stream = geminiConverter.native.stream(ours);
  const event = (parts: Json[], fields: Json = {}): Json => ({
    candidates: [{ content: { parts, role: "model" }, index: 0, somethingNew: 1 }],
    modelVersion: "gemini-3.8-flash",
    responseId: "x",
    ...fields,
  });
  const first = event([{ text: "Hé", thought: true }, { functionCall: { name: "f", args: { x: 1 } } }]);
  expect(stream.write(first)).toBe(`data: ${JSON.stringify({ ...first, modelVersion: "local/chat" })}\n\n`);
  expect(stream.outputBytes()).toBe(3 + 1 + '{"x":1}'.length);
  expect(stream.usage()).toBeUndefined();
  stream.write(event([], { usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 2, thoughtsTokenCount: 1 } }));
  expect(stream.usage()).toMatchObject({ prompt_tokens: 5, completion_tokens: 3 });
  expect(stream.write({ error: { code: 500 } })).toBe("");
  expect(stream.end(estimate)).toBe("");
});

test("the provider's events become chunks, the count with the end", () => {
  const stream = geminiConverter.streamToChat();
  const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 2, totalTokenCount: 7 };
  const event = (parts: Json[], fields: Json = {}): Json => ({
    candidates: [{ content: { parts, role: "model" }, index: 0, ...fields }],
    usageMetadata,
    responseId: "QHiLaa6L",
  });
  const of = (delta: Json, fields: Json = { finish_reason: null }) => ({
    id: "QHiLaa6L",
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, ...fields }],
  });
  expect(stream.write(event([{ text: "Hm.", thought: true }, { text: "Hi" }]))).toEqual([
    of({ reasoning_content: "Hm.", content: "Hi" }),
  ]);
  expect(stream.write(event([{ functionCall: { name: "f", args: { x: 1 } }, thoughtSignature: "b25l" }]))).toEqual([
    of({
      tool_calls: [
        {
          index: 0,
          id: "call_QHiLaa6L_0_0",
          type: "function",
          function: { name: "f", arguments: '{"x":1}' },
          ...google("b25l"),
        },
      ],
    }),
  ]);
  expect(stream.write(event([{ functionCall: { id: "own", name: "g" } }]))).toMatchObject([
    of({ tool_calls: [{ index: 1, id: "own", function: { arguments: "{}" } }] }),
  ]);
  expect(stream.write(event([{ text: "", thoughtSignature: "c2ln" }], { finishReason: "STOP" }))).toMatchObject([
    { ...of(google("c2ln"), { finish_reason: "tool_calls" }), usage: { prompt_tokens: 5, completion_tokens: 2 } },
  ]);
  expect(stream.usage()).toMatchObject({ prompt_tokens: 5 });
});

test("a prompt that was blocked is a refusal in a stream too, and a late count stands alone", () => {
  const stream = geminiConverter.streamToChat();
  expect(stream.write({ promptFeedback: { blockReason: "SAFETY" } })).toMatchObject([
    { choices: [{ delta: { refusal: "The prompt was blocked: SAFETY." }, finish_reason: "content_filter" }] },
  ]);
  expect(stream.write({ usageMetadata: { promptTokenCount: 3 } })).toMatchObject([
    { choices: [], usage: { prompt_tokens: 3 } },
  ]);
  expect(stream.write({})).toMatchObject([{ choices: [] }]);
  expect(geminiConverter.streamToChat().write({})).toEqual([]);
});
