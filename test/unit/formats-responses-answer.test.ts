import { expect, test } from "vitest";
import { completeChat } from "../../workers/conversion/chat/complete-chat.ts";
import { responsesConverter } from "../../workers/conversion/responses/index.ts";

type Json = Readonly<Record<string, unknown>>;

const tail = "0123456789abcdefghijklmn";
const identity = { model: "local/chat", created: 1_700_000_000, id: `chatcmpl-req_${tail}` };
const usage = {
  prompt_tokens: 10,
  completion_tokens: 5,
  total_tokens: 15,
  prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 3, cache_write_1h_tokens: 1 },
  completion_tokens_details: { reasoning_tokens: 3 },
};
const answer = (message: Json, choice: Json = {}) => ({ choices: [{ index: 0, message, ...choice }], usage });
const fromChat = (response: Json, request: Json = {}) =>
  responsesConverter.responseFromChat(completeChat(response, identity, { input: 7, output: 8 }), identity, {
    input: "x",
    ...request,
  });

test("a response has every field, with defaults", () => {
  expect(fromChat(answer({ content: "Hello" }, { finish_reason: "stop" }))).toEqual({
    id: `resp_${tail}`,
    object: "response",
    created_at: 1_700_000_000,
    status: "completed",
    background: false,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    max_tool_calls: null,
    metadata: {},
    model: "local/chat",
    output: [
      {
        id: `msg_${tail}_0`,
        type: "message",
        status: "completed",
        role: "assistant",
        content: [{ type: "output_text", annotations: [], logprobs: [], text: "Hello" }],
      },
    ],
    parallel_tool_calls: true,
    previous_response_id: null,
    prompt_cache_key: null,
    reasoning: { effort: null, summary: null },
    safety_identifier: null,
    service_tier: "default",
    store: false,
    temperature: 1,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: [],
    top_logprobs: 0,
    top_p: 1,
    truncation: "disabled",
    usage: {
      input_tokens: 10,
      input_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 },
      output_tokens: 5,
      output_tokens_details: { reasoning_tokens: 3 },
      total_tokens: 15,
    },
    user: null,
  });
});

test("settings of the request are repeated, but store is false", () => {
  const asked = {
    instructions: "Be brief.",
    max_output_tokens: 9,
    metadata: { a: "b" },
    parallel_tool_calls: false,
    temperature: 0,
    top_p: 0.5,
    tools: [{ type: "function", name: "f" }],
    tool_choice: "required",
    user: "u",
  };
  const text = { format: { type: "json_object" }, verbosity: "low" };
  const echoed = fromChat(answer({}), {
    ...asked,
    store: true,
    text,
    reasoning: { effort: "low" },
    service_tier: "auto",
  });
  expect(echoed).toMatchObject({
    ...asked,
    text,
    store: false,
    reasoning: { effort: "low", summary: null },
    service_tier: "default",
  });
});

test("reasoning, text, refusal and calls are items in this order", () => {
  const { output } = fromChat(
    answer(
      {
        reasoning_content: "Hm.",
        content: "I look.",
        refusal: "Not there.",
        tool_calls: [
          { id: "call_a", type: "function", function: { name: "f", arguments: '{"a":1}' } },
          { type: "function", function: { name: "g", arguments: "" } },
          { id: "call_c", type: "custom", custom: { name: "h", input: "x" } },
        ],
      },
      { finish_reason: "tool_calls" },
    ),
  );
  expect(output).toEqual([
    { id: `rs_${tail}_0`, type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }] },
    {
      id: `msg_${tail}_1`,
      type: "message",
      status: "completed",
      role: "assistant",
      content: [
        { type: "output_text", annotations: [], logprobs: [], text: "I look." },
        { type: "refusal", refusal: "Not there." },
      ],
    },
    {
      id: `fc_${tail}_2`,
      type: "function_call",
      status: "completed",
      call_id: "call_a",
      name: "f",
      arguments: '{"a":1}',
    },
    {
      id: `fc_${tail}_3`,
      type: "function_call",
      status: "completed",
      call_id: `call_${tail}_0_1`,
      name: "g",
      arguments: "{}",
    },
    { id: `ctc_${tail}_4`, type: "custom_tool_call", status: "completed", call_id: "call_c", name: "h", input: "x" },
  ]);
});

test.each([
  ["length", "max_output_tokens"],
  ["content_filter", "content_filter"],
])("a response that ended by %s is incomplete", (finish_reason, reason) => {
  expect(fromChat(answer({ content: "Hel" }, { finish_reason }))).toMatchObject({
    status: "incomplete",
    incomplete_details: { reason },
    output: [{ type: "message", status: "incomplete" }],
  });
});

test("log probabilities belong to their text", () => {
  const logprobs = {
    content: [{ token: "Hi", logprob: -0.1, bytes: null, top_logprobs: [{ token: "Ho", logprob: -2 }] }],
  };
  const { output } = fromChat(answer({ content: "Hi" }, { logprobs }));
  expect(output).toMatchObject([
    {
      content: [
        {
          logprobs: [
            { token: "Hi", logprob: -0.1, bytes: [], top_logprobs: [{ token: "Ho", logprob: -2, bytes: [] }] },
          ],
        },
      ],
    },
  ]);
});

test("a response without usage has the estimate", () => {
  expect(fromChat({ choices: [] })).toMatchObject({
    status: "completed",
    output: [],
    usage: { input_tokens: 7, output_tokens: 8, total_tokens: 15 },
  });
});
