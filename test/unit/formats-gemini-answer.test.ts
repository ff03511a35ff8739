import { expect, test } from "vitest";
import { completeChat } from "../../workers/conversion/chat/complete-chat.ts";
import type { FormatConverter } from "../../workers/conversion/converter.ts";
import { geminiConverter } from "../../workers/conversion/gemini/index.ts";
import { converters } from "../../workers/conversion/index.ts";
import { tokenUsage } from "../../workers/conversion/usage.ts";
import { has } from "../support/conversions.ts";
import { estimate, framesOf } from "../support/formats-gemini-assemble.ts";

type Json = Readonly<Record<string, unknown>>;

const { native } = geminiConverter;
const fromChat: FormatConverter["responseFromChat"] = (...all) => geminiConverter.responseFromChat(...all);
const toChatAnswer = (answer: Json): Json => geminiConverter.responseToChat(answer);
const identity = { model: "google/gemini-3.8-flash", created: 1_700_000_000, id: "req_abc" };
const google = (thought_signature: string) => ({ extra_content: { google: { thought_signature } } });
const usageMetadata = {
  promptTokenCount: 19,
  cachedContentTokenCount: 3,
  candidatesTokenCount: 4,
  toolUsePromptTokenCount: 63,
  thoughtsTokenCount: 56,
  totalTokenCount: 142,
};
const answered = (candidate: Json, fields: Json = {}): Json => ({
  candidates: [{ content: { role: "model", parts: [{ text: "Hi" }] }, finishReason: "STOP", index: 0, ...candidate }],
  usageMetadata,
  modelVersion: "gemini-3.8-flash",
  responseId: "QHiLaa6L",
  ...fields,
});
const chatOf = (candidate: Json, fields: Json = {}) => {
  const { choices } = toChatAnswer(answered(candidate, fields));
  return (choices as { message: Json; finish_reason: unknown }[])[0];
};
const parts = (...all: Json[]): Json => ({ content: { role: "model", parts: all } });
const geminiOf = (message: Json, choice: Json = {}, request: Json = {}) => {
  const answer = { choices: [{ index: 0, message, finish_reason: "stop", ...choice }], usage: { prompt_tokens: 1 } };
  return (fromChat(answer, identity, request)["candidates"] as Json[])[0];
};

test("a provider's response as chat", () => {
  expect(
    toChatAnswer(
      answered(
        parts(
          { text: "Hm.", thought: true },
          { text: "Let me " },
          { text: "see.", thoughtSignature: "c2ln" },
          { functionCall: { id: "a", name: "one", args: { x: 1 } }, thoughtSignature: "b25l" },
          { functionCall: { name: "two" } },
        ),
      ),
    ),
  ).toEqual({
    id: "QHiLaa6L",
    object: "chat.completion",
    model: "gemini-3.8-flash",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: "Let me see.",
          refusal: null,
          reasoning_content: "Hm.",
          tool_calls: [
            { id: "a", type: "function", function: { name: "one", arguments: '{"x":1}' }, ...google("b25l") },
            { id: "call_QHiLaa6L_0_1", type: "function", function: { name: "two", arguments: "{}" } },
          ],
          ...google("c2ln"),
        },
        finish_reason: "tool_calls",
        native_finish_reason: "STOP",
      },
    ],
    usage: {
      prompt_tokens: 82,
      completion_tokens: 60,
      total_tokens: 142,
      prompt_tokens_details: { cached_tokens: 3, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 56 },
    },
  });
});

test("usage bills each token that the provider counts once", () => {
  const billed = (usage: Json) => tokenUsage(native.usage({ usageMetadata: usage }));
  expect(billed(usageMetadata)).toEqual({
    input: 79,
    cached_input: 3,
    cache_write: 0,
    cache_write_1h: 0,
    audio_input: 0,
    output: 60,
    audio_output: 0,
  });
  const spoken = (count: number, words = 5) => [
    { modality: "TEXT", tokenCount: words },
    { modality: "AUDIO", tokenCount: count },
  ];
  expect(
    billed({
      promptTokenCount: 125,
      cachedContentTokenCount: 45,
      candidatesTokenCount: 7,
      promptTokensDetails: spoken(100, 25),
      cacheTokensDetails: spoken(40),
      candidatesTokensDetails: spoken(2),
    }),
  ).toMatchObject({ input: 20, cached_input: 45, audio_input: 60, output: 5, audio_output: 2 });
  expect(billed({ promptTokenCount: 9 })).toMatchObject({ input: 9, output: 0 });
  expect(native.usage({})).toBeUndefined();
  expect(native.usage({ usageMetadata: { promptTokenCount: "9" } })).toBeUndefined();
});

test("finish reasons as chat", () => {
  const finish = (finishReason: string) => chatOf({ finishReason })?.finish_reason;
  expect(finish("STOP")).toBe("stop");
  expect(finish("MAX_TOKENS")).toBe("length");
  expect(finish("CONTINUATION")).toBe("length");
  for (const reason of ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"])
    expect(finish(reason)).toBe("content_filter");
  expect(chatOf({ finishReason: "SAFETY", finishMessage: "Not this." })?.message["refusal"]).toBe("Not this.");
  expect(chatOf({ finishReason: undefined })?.finish_reason).toBeNull();
  expect(chatOf({ finishReason: "SAFETY" })).toHaveProperty("native_finish_reason", "SAFETY");
});

const failures = ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "OTHER", "MALFORMED_RESPONSE", "SOMETHING_NEW"];

test.each(failures)("an answer that ended with %s is a success in no format", (reason) => {
  const message = "Malformed function call: look_up(";
  const failed = answered({ finishReason: reason, finishMessage: message, ...parts({ functionCall: { name: "f" } }) });
  const chat = toChatAnswer(failed);
  const choice = { finish_reason: "error", native_finish_reason: reason, error: { code: 502, message } };
  expect(chat).toMatchObject({ choices: [choice] });
  expect(toChatAnswer(answered({ finishReason: reason }))).toMatchObject({
    choices: [{ error: { message: `The model's answer ended with ${reason}.` } }],
  });
  const refusal = { stop_reason: "refusal", stop_details: { type: "refusal", category: null, explanation: message } };
  const inFormat = {
    messages: refusal,
    responses: { status: "failed", incomplete_details: null, error: { code: "server_error", message } },
    gemini: { candidates: [{ finishReason: "OTHER", finishMessage: message }] },
  };
  const lastEvent = {
    messages: { delta: refusal },
    responses: { response: inFormat.responses },
    gemini: inFormat.gemini,
  };
  for (const format of ["messages", "responses", "gemini"] as const) {
    expect(converters[format].responseFromChat(chat, identity, {})).toMatchObject(inFormat[format]);
    const stream = converters[format].streamFromChat(identity, {});
    for (const chunk of geminiConverter.streamToChat().write(failed)) stream.write(chunk);
    const events = stream.end(estimate).trim().split("\n\n");
    const data = events.map((event) => JSON.parse(event.slice(event.indexOf("data: ") + 6)) as Json);
    expect(data.some((event) => has(event, lastEvent[format]))).toBe(true);
  }
});

test("a blocked prompt is a refusal", () => {
  const blocked = { candidates: undefined, promptFeedback: { blockReason: "PROHIBITED_CONTENT" } };
  expect(chatOf({}, blocked)).toEqual({
    index: 0,
    message: { role: "assistant", content: null, refusal: "The prompt was blocked: PROHIBITED_CONTENT." },
    finish_reason: "content_filter",
  });
});

test("log probabilities are converted both ways", () => {
  const chosen = { token: "Hi", logProbability: -0.1 };
  const logprobsResult = { chosenCandidates: [chosen], topCandidates: [{ candidates: [chosen] }] };
  const token = { token: "Hi", logprob: -0.1, bytes: null };
  const logprobs = { content: [{ ...token, top_logprobs: [token] }], refusal: null };
  expect(chatOf({ logprobsResult })).toMatchObject({ logprobs });
  expect(geminiOf({ content: "Hi" }, { logprobs })).toMatchObject({ logprobsResult });
});

test("a chat response as Gemini", () => {
  const usage = {
    prompt_tokens: 10,
    completion_tokens: 8,
    total_tokens: 18,
    prompt_tokens_details: { cached_tokens: 4, audio_tokens: 2 },
    completion_tokens_details: { reasoning_tokens: 5 },
  };
  const message = {
    role: "assistant",
    content: "Hi",
    reasoning_content: "Hm.",
    ...google("c2ln"),
    tool_calls: [
      { id: "a", type: "function", function: { name: "one", arguments: '{"x":1}' }, ...google("b25l") },
      { type: "function", function: { name: "two", arguments: "" } },
    ],
  };
  const answer = { choices: [{ index: 0, message, finish_reason: "tool_calls" }], usage };
  const includeThoughts = { generationConfig: { thinking_config: { include_thoughts: true } } };
  const words = [{ text: "Hi", thoughtSignature: "c2ln" }];
  const calls = [
    { functionCall: { id: "a", name: "one", args: { x: 1 } }, thoughtSignature: "b25l" },
    { functionCall: { id: "call_req_abc_0_1", name: "two", args: {} } },
  ];
  const expected = (...all: Json[]) => ({
    candidates: [{ content: { role: "model", parts: all }, finishReason: "STOP", index: 0 }],
    usageMetadata: {
      promptTokenCount: 10,
      candidatesTokenCount: 3,
      totalTokenCount: 18,
      cachedContentTokenCount: 4,
      thoughtsTokenCount: 5,
      promptTokensDetails: [
        { modality: "TEXT", tokenCount: 8 },
        { modality: "AUDIO", tokenCount: 2 },
      ],
    },
    modelVersion: "google/gemini-3.8-flash",
    responseId: "req_abc",
  });
  expect(fromChat(answer, identity, includeThoughts)).toEqual(
    expected({ text: "Hm.", thought: true }, ...words, ...calls),
  );
  // There are none without includeThoughts.
  expect(fromChat(answer, identity, {})).toEqual(expected(...words, ...calls));
});

test("chat's finish reasons and refusals; every content has a part", () => {
  expect(geminiOf({ content: "Hi" }, { finish_reason: "length" })).toMatchObject({ finishReason: "MAX_TOKENS" });
  expect(geminiOf({ content: null }, { finish_reason: "content_filter" })).toMatchObject({
    content: { role: "model", parts: [{ text: "" }] },
    finishReason: "SAFETY",
  });
  expect(geminiOf({ content: null, refusal: "No." })).toMatchObject({
    content: { parts: [{ text: "No." }] },
    finishReason: "SAFETY",
  });
  expect(geminiOf({ content: [{ type: "text", text: "Hi" }] })).toMatchObject({ content: { parts: [{ text: "Hi" }] } });
});

test("arguments that are not an object end with MALFORMED_FUNCTION_CALL", () => {
  const calls = (args: unknown, finish_reason = "tool_calls") =>
    geminiOf({ tool_calls: [{ id: "a", function: { name: "f", arguments: args } }] }, { finish_reason });
  for (const args of ['{"x":', "[1]", '"x"', "1", `${'{"a":'.repeat(5000)}1${"}".repeat(5000)}`])
    expect(calls(args)).toEqual({
      content: { role: "model", parts: [{ text: "" }] },
      finishReason: "MALFORMED_FUNCTION_CALL",
      finishMessage: `Malformed function call: f(${args})`,
      index: 0,
    });
  expect(calls('{"x":', "length")).toMatchObject({ finishReason: "MAX_TOKENS" });
  expect(calls({ x: 1 })).toMatchObject({ content: { parts: [{ functionCall: { args: { x: 1 } } }] } });
});

test("several choices are several candidates", () => {
  const choices = [1, 0].map((index) => ({ index, message: { content: String(index) }, finish_reason: "stop" }));
  expect(fromChat({ choices }, identity, {})["candidates"]).toEqual([
    { content: { role: "model", parts: [{ text: "1" }] }, finishReason: "STOP", index: 1 },
    { content: { role: "model", parts: [{ text: "0" }] }, finishReason: "STOP", index: 0 },
  ]);
});

test("a response converted to chat and back is the same", () => {
  const answer = answered(
    parts(
      { text: "Hm.", thought: true },
      { text: "Hi", thoughtSignature: "c2ln" },
      { functionCall: { id: "a", name: "one", args: { x: 1 } }, thoughtSignature: "b25l" },
    ),
    { usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 3, totalTokenCount: 14, thoughtsTokenCount: 2 } },
  );
  const chat = completeChat(toChatAnswer(answer), identity, { input: 0, output: 0 });
  const request = { generationConfig: { thinkingConfig: { includeThoughts: true } } };
  expect(fromChat(chat, { ...identity, model: "gemini-3.8-flash", id: "QHiLaa6L" }, request)).toEqual(answer);
});

test("pass-through changes only the model, the cap and store", () => {
  const request = {
    model: "models/gemini-3.8-flash",
    contents: [{ parts: [{ text: "Hi", thought_signature: "c2ln" }] }],
    generation_config: { max_output_tokens: 9000, topK: 3 },
    safetySettings: [{ category: "x" }],
    somethingNew: { a_b: 1 },
    store: true,
  };
  expect(native.prepare(request, { model: "gemini-3.8-flash", cap: 50, capField: "max_tokens" })).toEqual({
    contents: [{ parts: [{ text: "Hi", thoughtSignature: "c2ln" }] }],
    generationConfig: { maxOutputTokens: 50, topK: 3 },
    safetySettings: [{ category: "x" }],
    somethingNew: { a_b: 1 },
    store: false,
  });
  const answer = answered({ groundingMetadata: { a: 1 }, citationMetadata: { b: 2 } });
  expect(native.finish(answer, identity, estimate)).toEqual({ ...answer, modelVersion: identity.model });
  expect(native.finish({ candidates: [] }, identity, estimate)).toEqual({ candidates: [] });
});

test("continuation tokens are removed, whole and in a stream", () => {
  const candidate = { content: { parts: [{ text: "So far" }], role: "model" }, finishReason: "CONTINUATION" };
  const without = { candidates: [candidate, { index: 1 }] };
  const answer = { candidates: [{ ...candidate, continuationToken: "dG9rZW4=" }, { index: 1 }] };
  expect(native.finish(answer, identity, estimate)).toEqual(without);
  expect(framesOf(native.stream(identity).write(answer))).toEqual([without]);
  expect(native.finish(without, identity, estimate)).toBe(without);
  for (const candidates of [undefined, null, "x", {}, [null, "x", 5]])
    expect(native.finish({ candidates }, identity, estimate)).toEqual({ candidates });
});
