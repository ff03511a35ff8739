import fc from "fast-check";
import { expect, test } from "vitest";
import { completeChat } from "../../workers/conversion/chat/complete-chat.ts";
import { geminiArrayConverter, geminiConverter } from "../../workers/conversion/gemini/index.ts";
import {
  type Answer,
  assemble,
  estimate,
  framesOf,
  google,
  identity,
  type Json,
  showThoughts,
  streamed,
} from "../support/formats-gemini-assemble.ts";

const chunk = (delta: Json, fields: Json = {}): Json => ({ choices: [{ index: 0, delta, ...fields }] });
const ended: Json = chunk({}, { finish_reason: "stop" });

test("text is written as it comes, usage with the last event", () => {
  const stream = geminiConverter.streamFromChat(identity, {});
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

test("an empty stream has a last event with the estimate", () => {
  expect(streamed([])).toMatchObject([
    { candidates: [{ index: 0, finishReason: "STOP" }], usageMetadata: { promptTokenCount: 7, totalTokenCount: 16 } },
  ]);
});

test("the finish reason is final, whatever comes after it", () => {
  const last = streamed([chunk({}, { finish_reason: "length" }), chunk({ content: "" }, { finish_reason: null })]);
  expect(last).toMatchObject([{ candidates: [{ finishReason: "MAX_TOKENS" }] }]);
});

test("calls are written whole with the last event, whatever their server omits", () => {
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
  const stream = geminiConverter.streamFromChat(identity, {});
  for (const each of named) expect(stream.write(each)).toBe("");
  expect(stream.outputBytes()).toBe('late{"x":1}two'.length);
});

test("without alt=sse the stream is one JSON array", () => {
  const stream = geminiArrayConverter.streamFromChat(identity, {});
  const text = [chunk({ content: "Hel" }), chunk({ content: "lo" }), ended].map((each) => stream.write(each)).join("");
  const all = JSON.parse(text + stream.end(estimate)) as Answer[];
  expect(all).toHaveLength(3);
  expect(assemble(all)).toMatchObject({ candidates: [{ parts: [{ text: "Hello" }], finishReason: "STOP" }] });
  expect(JSON.parse(geminiArrayConverter.streamFromChat(identity, {}).end(estimate))).toHaveLength(1);
  const native = geminiArrayConverter.native.stream(identity);
  expect(JSON.parse(native.write({ candidates: [] }) + native.write({ a: 1 }) + native.end(estimate))).toEqual([
    { candidates: [] },
    { a: 1 },
  ]);
  expect(geminiArrayConverter.native.stream(identity).end(estimate)).toBe("[]");
});

test("native events pass through, except for the model", () => {
  const stream = geminiConverter.native.stream(identity);
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

test("the provider's events as chunks, usage with the last one", () => {
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

test("a blocked prompt is a refusal in a stream as well; late usage has its own chunk", () => {
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

/** The text cut at these positions. */
function pieces(text: string, cuts: readonly number[]): string[] {
  const at = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].toSorted((a, b) => a - b);
  return [0, ...at].map((start, i) => text.slice(start, at[i])).filter((piece) => piece !== "");
}

const cuts = fc.array(fc.nat(60), { maxLength: 6 });
const words = fc.option(fc.string({ minLength: 1, maxLength: 40, unit: "grapheme" }), { nil: null });
const signature = fc.option(fc.constantFrom("c2ln", "b25l"), { nil: undefined });
const callOf = fc.record({
  name: fc.constantFrom("f", "g"),
  args: fc.oneof(
    fc.dictionary(fc.constantFrom("a", "b"), fc.oneof(fc.string(), fc.integer())).map((args) => JSON.stringify(args)),
    fc.constantFrom("", '{"broken":'),
  ),
  signature,
  cuts,
});
const choiceOf = fc.record({
  content: words,
  reasoning: words,
  calls: fc.array(callOf, { maxLength: 3 }),
  signature,
  finish: fc.constantFrom("stop", "tool_calls", "length", "content_filter"),
  cuts,
});
type Choice = typeof choiceOf extends fc.Arbitrary<infer Value> ? Value : never;

const usage = {
  prompt_tokens: 11,
  completion_tokens: 6,
  total_tokens: 17,
  completion_tokens_details: { reasoning_tokens: 2 },
};

function wholeOf(choices: readonly Choice[]): Json {
  return {
    choices: choices.map(({ content, reasoning, calls, signature, finish }, index) => ({
      index,
      message: {
        content,
        ...(reasoning && { reasoning_content: reasoning }),
        ...(signature && google(signature)),
        ...(calls.length > 0 && {
          tool_calls: calls.map(({ name, args, signature }, c) => ({
            id: `call_${index}_${c}`,
            function: { name, arguments: args },
            ...(signature && google(signature)),
          })),
        }),
      },
      finish_reason: finish,
    })),
    usage,
  };
}

/** The interleaved deltas of all calls, as some servers send them. */
function interleaved(calls: Choice["calls"], index: number): Json[] {
  const begun = calls.map(({ name, signature }, c) => ({
    index: c,
    id: `call_${index}_${c}`,
    function: { name, arguments: "" },
    ...(signature && google(signature)),
  }));
  const rest = calls.map(({ args, cuts }, c) =>
    pieces(args, cuts).map((piece) => ({ index: c, function: { arguments: piece } })),
  );
  const longest = Math.max(0, ...rest.map((each) => each.length));
  const turns = Array.from({ length: longest }, (_, i) => rest.flatMap((each) => each[i] ?? []));
  return [...begun, ...turns.flat()].map((call) => ({ tool_calls: [call] }));
}

function chunksOf(choices: readonly Choice[]): Json[] {
  const deltas = choices.map(({ content, reasoning, calls, signature, finish, cuts }, index) =>
    [
      { role: "assistant", content: "" },
      ...pieces(reasoning ?? "", cuts).map((piece) => ({ reasoning_content: piece })),
      ...pieces(content ?? "", cuts).map((piece) => ({ content: piece })),
      ...(signature ? [google(signature)] : []),
      ...interleaved(calls, index),
    ]
      .map((delta: Json) => ({ choices: [{ index, delta, finish_reason: null }] }) as Json)
      .concat({ choices: [{ index, delta: {}, finish_reason: finish }] }),
  );
  return [...deltas.flat(), { choices: [], usage }];
}

test("an assembled stream is the whole response, wherever it was cut", () => {
  fc.assert(
    fc.property(fc.array(choiceOf, { minLength: 1, maxLength: 2 }), fc.boolean(), (choices, thoughts) => {
      const request = thoughts ? showThoughts : {};
      const whole = geminiConverter.responseFromChat(
        completeChat(wholeOf(choices), identity, estimate),
        identity,
        request,
      );
      expect(assemble(streamed(chunksOf(choices), request))).toEqual(assemble([whole as unknown as Answer]));
    }),
  );
});

const text = fc.string({ maxLength: 10 });
const partOf: fc.Arbitrary<Json> = fc.oneof(
  fc.record({ text, thought: fc.constant(true) }),
  fc.record({ text }),
  fc.record({ text: fc.constant(""), thoughtSignature: fc.constantFrom("c2ln", "b25l") }),
  fc.record({
    functionCall: fc.record(
      { id: fc.uuid(), name: fc.constantFrom("f", "g"), args: fc.dictionary(fc.constantFrom("a"), text) },
      { requiredKeys: ["name"] },
    ),
    thoughtSignature: fc.constant("YQ=="),
  }),
);

test("the provider's stream as chat is its whole answer as chat, in whatever order its parts come", () => {
  fc.assert(
    fc.property(fc.array(fc.array(partOf, { maxLength: 3 }), { minLength: 1, maxLength: 5 }), (events) => {
      const answer = (parts: Json[], fields: Json = {}): Json => ({
        candidates: [{ content: { parts, role: "model" }, index: 0, ...fields }],
        usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 2, totalTokenCount: 8, thoughtsTokenCount: 1 },
        responseId: "QHiLaa6L",
      });
      const end = { finishReason: "STOP" };
      const stream = geminiConverter.streamToChat();
      const chunks = [...events.map((parts) => answer(parts)), answer([], end)].flatMap((event) => [
        ...stream.write(event),
      ]);
      const message: Record<string, unknown> = { role: "assistant", content: null, refusal: null };
      for (const { choices } of chunks as { choices: { delta: Json }[] }[])
        for (const [field, value] of Object.entries(choices[0]?.delta ?? {})) {
          if (typeof value === "string") message[field] = ((message[field] ?? "") as string) + value;
          else if (Array.isArray(value)) message[field] = [...((message[field] ?? []) as Json[]), ...value];
          else message[field] = value;
        }
      const whole = geminiConverter.responseToChat(answer(events.flat(), end));
      const [choice] = whole["choices"] as { message: Json; finish_reason: unknown }[];
      const calls = (choice?.message["tool_calls"] ?? []) as Json[];
      expect(message).toEqual({
        ...choice?.message,
        ...(calls.length > 0 && { tool_calls: calls.map((call, index) => ({ index, ...call })) }),
      });
      expect(chunks.at(-1)).toMatchObject({
        choices: [{ finish_reason: choice?.finish_reason }],
        usage: whole["usage"],
      });
    }),
  );
});
