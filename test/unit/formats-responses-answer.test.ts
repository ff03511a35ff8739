import { expect, test } from "vitest";
import { completeChat } from "../../workers/conversion/chat/complete-chat.ts";
import { responsesConverter } from "../../workers/conversion/responses/index.ts";

type Json = Readonly<Record<string, unknown>>;

const tail = "0123456789abcdefghijklmn";
const created = 1_700_000_000;
const identity = { model: "local/chat", created, id: `chatcmpl-req_${tail}`, now: () => created + 5 };
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
    created_at: created,
    completed_at: created + 5,
    status: "completed",
    access_programs: null,
    background: false,
    error: null,
    frequency_penalty: 0,
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
    presence_penalty: 0,
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
    tool_choice: "required",
    user: "u",
  };
  const named = { type: "function", name: "f" };
  const strict = { ...named, description: "d", parameters: {}, strict: true };
  const text = { format: { type: "json_object" }, verbosity: "low" };
  const response = fromChat(answer({}), {
    ...asked,
    store: true,
    tools: [named, { type: "namespace", name: "n", tools: [strict, named] }],
    text,
    reasoning: { effort: "low" },
    service_tier: "auto",
  });
  const echoed = { ...named, description: null, parameters: null, strict: false };
  expect(response).toMatchObject({
    ...asked,
    text,
    tools: [echoed, { type: "namespace", name: "n", tools: [strict, echoed] }],
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
          { id: "call_c", type: "function", function: { name: "h", arguments: '{"input":"x"}' } },
          { id: "call_d", type: "function", function: { name: "h", arguments: "no JSON" } },
          { id: "call_e", type: "function", function: { name: "crm__look_up", arguments: '{"a":1}' } },
          { id: "call_f", type: "function", function: { name: "crm__write", arguments: '{"input":"y"}' } },
          { id: "call_g", type: "function", function: { name: "tool_search", arguments: '{"query":"orders"}' } },
        ],
      },
      { finish_reason: "tool_calls" },
    ),
    {
      tools: [
        { type: "custom", name: "h" },
        {
          type: "namespace",
          name: "crm",
          tools: [
            { type: "function", name: "look up" },
            { type: "custom", name: "write" },
          ],
        },
        { type: "tool_search", execution: "client" },
      ],
    },
  );
  const done = (type: string, prefix: string, at: number, call_id: string) => ({
    id: `${prefix}_${tail}_${at}`,
    type,
    status: "completed",
    call_id,
  });
  expect(output).toEqual([
    {
      id: `rs_${tail}_0`,
      type: "reasoning",
      summary: [{ type: "summary_text", text: "Hm." }],
      encrypted_content: expect.stringMatching(/^[\w+/=]+$/) as string,
    },
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
    { ...done("function_call", "fc", 2, "call_a"), name: "f", arguments: '{"a":1}' },
    { ...done("function_call", "fc", 3, `call_${tail}_0_1`), name: "g", arguments: "{}" },
    { ...done("custom_tool_call", "ctc", 4, "call_c"), name: "h", input: "x" },
    { ...done("custom_tool_call", "ctc", 5, "call_d"), name: "h", input: "no JSON" },
    { ...done("function_call", "fc", 6, "call_e"), name: "look up", namespace: "crm", arguments: '{"a":1}' },
    { ...done("custom_tool_call", "ctc", 7, "call_f"), name: "write", namespace: "crm", input: "y" },
    { ...done("tool_search_call", "tsc", 8, "call_g"), execution: "client", arguments: { query: "orders" } },
  ]);
});

test.each([
  ["length", "max_output_tokens"],
  ["content_filter", "content_filter"],
])("a response that ended by %s is incomplete", (finish_reason, reason) => {
  expect(fromChat(answer({ content: "Hel" }, { finish_reason }))).toMatchObject({
    status: "incomplete",
    completed_at: null,
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
