import { expect, test } from "vitest";
import { tokenUsage } from "../../workers/conversion/index.ts";
import { messagesConverter } from "../../workers/conversion/messages/index.ts";

type Json = Readonly<Record<string, unknown>>;

const ours = { model: "local/chat", created: 1_700_000_000, id: "chatcmpl-req_abc" };
const chat = (message: Json, fields: Json = {}) => ({
  choices: [{ index: 0, message: { role: "assistant", content: null, ...message }, finish_reason: "stop", ...fields }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
});
const answered = (message: Json, fields: Json = {}, request: Json = {}) =>
  messagesConverter.responseFromChat(chat(message, fields), ours, request);
const native = (content: readonly Json[], fields: Json = {}): Json => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-opus-5-5",
  content,
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 2 },
  ...fields,
});

test("a chat answer becomes a complete message", () => {
  // AI SDK's client requires `citations` to be a list or absent.
  expect(answered({ content: "Hello" })).toStrictEqual({
    id: "msg_abc",
    type: "message",
    role: "assistant",
    model: "local/chat",
    content: [{ type: "text", text: "Hello" }],
    stop_reason: "end_turn",
    stop_sequence: null,
    stop_details: null,
    container: null,
    diagnostics: null,
    usage: {
      input_tokens: 3,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      cache_creation: null,
      output_tokens: 2,
      output_tokens_details: null,
      server_tool_use: null,
      service_tier: null,
      inference_geo: null,
      speed: null,
    },
  });
});

test("thinking, text and calls become blocks in this order", () => {
  const call = (id: string, args: string) => ({ id, type: "function", function: { name: "look", arguments: args } });
  const tool_calls = [call("a", '{"at":1}'), call("b", ""), call("c", '{"at":')];
  expect(
    answered({ reasoning_content: "Hm", content: "So", tool_calls }, { finish_reason: "tool_calls" }),
  ).toMatchObject({
    content: [
      { type: "thinking", thinking: "Hm", signature: expect.any(String) },
      { type: "text", text: "So" },
      { type: "tool_use", id: "a", name: "look", input: { at: 1 } },
      { type: "tool_use", id: "b", name: "look", input: {} },
      { type: "tool_use", id: "c", name: "look", input: { INVALID_JSON: '{"at":' } },
    ],
    stop_reason: "tool_use",
  });
});

test.each([
  ["stop", "end_turn"],
  ["length", "max_tokens"],
  ["tool_calls", "end_turn"],
  ["content_filter", "refusal"],
  [null, "end_turn"],
])("an answer without calls that ended with %s has the stop reason %s", (finish_reason, stop_reason) => {
  expect(answered({ content: "x" }, { finish_reason })).toMatchObject({ stop_reason, stop_sequence: null });
});

test("tool calls are the stop reason even if the server says stop; a cap and a refusal take precedence", () => {
  const tool_calls = [{ id: "a", type: "function", function: { name: "f", arguments: "{}" } }];
  expect(answered({ tool_calls })["stop_reason"]).toBe("tool_use");
  expect(answered({ tool_calls }, { finish_reason: "length" })["stop_reason"]).toBe("max_tokens");
  expect(answered({ refusal: "I will not." })).toMatchObject({
    content: [{ type: "text", text: "I will not." }],
    stop_reason: "refusal",
  });
});

test("a stop sequence is named if the server names it", () => {
  const request = { stop_sequences: ["END"] };
  const hit = { stop_reason: "stop_sequence", stop_sequence: "END" };
  expect(answered({ content: "x" }, { stop_reason: "END" }, request)).toMatchObject(hit);
  expect(answered({ content: "x" }, { stop_reason: 128_001 }, request)).toMatchObject({ stop_reason: "end_turn" });
  expect(messagesConverter.responseToChat(native([], hit))).toMatchObject({
    choices: [{ finish_reason: "stop", stop_reason: "END" }],
  });
});

test.each([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["pause_turn", "stop"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_use", "tool_calls"],
  ["refusal", "content_filter"],
  ["something_new", "stop"],
  ["toString", "stop"],
])("the stop reason %s finishes a chat answer with %s", (stop_reason, finish_reason) => {
  expect(messagesConverter.responseToChat(native([], { stop_reason }))).toMatchObject({ choices: [{ finish_reason }] });
});

test("a message becomes a chat answer with its reasoning as text and as state", () => {
  const format = "anthropic-claude-v1";
  const answer = messagesConverter.responseToChat(
    native(
      [
        { type: "thinking", thinking: "Hm", signature: "sig" },
        { type: "redacted_thinking", data: "xyz" },
        { type: "text", text: "So ", citations: [{ type: "char_location" }] },
        { type: "text", text: "be it" },
        { type: "tool_use", id: "toolu_1", name: "look", input: { at: "door" } },
      ],
      { stop_reason: "tool_use" },
    ),
  );
  expect(answer).toEqual({
    id: "msg_1",
    object: "chat.completion",
    model: "claude-opus-5-5",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: "So be it",
          refusal: null,
          reasoning_content: "Hm",
          reasoning_details: [
            { type: "reasoning.text", text: "Hm", signature: "sig", format, index: 0 },
            { type: "reasoning.encrypted", data: "xyz", format, index: 1 },
          ],
          tool_calls: [{ id: "toolu_1", type: "function", function: { name: "look", arguments: '{"at":"door"}' } }],
        },
        finish_reason: "tool_calls",
      },
    ],
    usage: {
      prompt_tokens: 3,
      completion_tokens: 2,
      total_tokens: 5,
      prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0, cache_write_1h_tokens: 0 },
    },
  });
});

test("the provider's explanation becomes the refusal", () => {
  const stop_details = { type: "refusal", category: "bio", explanation: "Too dangerous." };
  expect(messagesConverter.responseToChat(native([], { stop_reason: "refusal", stop_details }))).toMatchObject({
    choices: [{ message: { content: null, refusal: "Too dangerous." }, finish_reason: "content_filter" }],
  });
});

test("usage includes cache reads, cache writes and reasoning", () => {
  const usage = {
    input_tokens: 10,
    cache_read_input_tokens: 200,
    cache_creation_input_tokens: 70,
    cache_creation: { ephemeral_5m_input_tokens: 40, ephemeral_1h_input_tokens: 30 },
    output_tokens: 9,
    output_tokens_details: { thinking_tokens: 4 },
  };
  const shown = {
    prompt_tokens: 280,
    completion_tokens: 9,
    total_tokens: 289,
    prompt_tokens_details: { cached_tokens: 200, cache_write_tokens: 70, cache_write_1h_tokens: 30 },
    completion_tokens_details: { reasoning_tokens: 4 },
  };
  expect(messagesConverter.native.usage(native([], { usage }))).toEqual(shown);
  expect(messagesConverter.responseToChat(native([], { usage }))["usage"]).toEqual(shown);
  expect(tokenUsage(shown)).toMatchObject({ cached_input: 200, cache_write: 40, output: 9 });
  expect(
    messagesConverter.responseFromChat({ ...chat({ content: "x" }), usage: shown }, ours, {})["usage"],
  ).toMatchObject({
    input_tokens: 10,
    cache_read_input_tokens: 200,
    cache_creation_input_tokens: 70,
    output_tokens: 9,
    output_tokens_details: { thinking_tokens: 4 },
  });
  expect(messagesConverter.native.usage(native([], { usage: { output_tokens: 1 } }))).toBeUndefined();
  expect(
    messagesConverter.native.usage(native([], { usage: { input_tokens: 1, cache_read_input_tokens: -5 } })),
  ).toEqual(expect.objectContaining({ prompt_tokens: 1 }));
});
