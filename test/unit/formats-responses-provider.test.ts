import { expect, test } from "vitest";
import { upstreamError } from "#errors";
import { ignoredParams } from "../../workers/conversion/index.ts";
import { responsesConverter, responsesFailure } from "../../workers/conversion/responses/index.ts";
import { clientAnswer, eventsOf, type Json } from "../support/formats-responses-assemble.ts";

const summary = [
  { type: "summary_text", text: "One." },
  { type: "summary_text", text: "Two." },
];
const provider = (fields: Json = {}): Json => ({
  id: "resp_1",
  object: "response",
  created_at: 5,
  model: "gpt-5-2026",
  status: "completed",
  error: null,
  incomplete_details: null,
  output: [
    { type: "reasoning", id: "rs_1", summary, encrypted_content: "secret" },
    { type: "web_search_call", id: "ws_1" },
    {
      type: "message",
      id: "msg_1",
      role: "assistant",
      content: [
        { type: "output_text", text: "Hel", annotations: [], logprobs: [{ token: "Hel" }] },
        { type: "output_text", text: "lo", annotations: [] },
      ],
    },
    { type: "function_call", id: "fc_1", call_id: "call_a", name: "f", arguments: "{}" },
    { type: "custom_tool_call", id: "ctc_1", call_id: "call_b", name: "h", input: "x" },
  ],
  usage: {
    input_tokens: 10,
    input_tokens_details: {
      cached_tokens: 4,
      cache_write_tokens: 3,
      cache_write_tokens_details: { ttl_12h_tokens: 1, ttl_30m_tokens: 2 },
    },
    output_tokens: 5,
    output_tokens_details: { reasoning_tokens: 3 },
    total_tokens: 15,
  },
  ...fields,
});

test("a provider's response as chat, with reasoning state and usage", () => {
  const shared = { id: "rs_1", format: "openai-responses-v1", index: 0 };
  expect(responsesConverter.responseToChat(provider())).toEqual({
    id: "resp_1",
    object: "chat.completion",
    created: 5,
    model: "gpt-5-2026",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: "Hello",
          refusal: null,
          reasoning_content: "One.\n\nTwo.",
          reasoning_details: [
            { type: "reasoning.summary", summary: "One.", ...shared },
            { type: "reasoning.summary", summary: "Two.", ...shared },
            { type: "reasoning.encrypted", data: "secret", ...shared },
          ],
          tool_calls: [
            { id: "call_a", type: "function", function: { name: "f", arguments: "{}" } },
            { id: "call_b", type: "custom", custom: { name: "h", input: "x" } },
          ],
        },
        logprobs: { content: [{ token: "Hel" }] },
        finish_reason: "tool_calls",
      },
    ],
    usage: {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 15,
      prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 3, cache_write_1h_tokens: 1, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 3 },
    },
  });
});

test.each([
  [{ output: [] }, "stop"],
  [{ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } }, "length"],
  [{ status: "incomplete", incomplete_details: { reason: "content_filter" } }, "content_filter"],
])("%j has the finish reason %s", (fields, finish_reason) => {
  expect(responsesConverter.responseToChat(provider(fields))).toMatchObject({ choices: [{ finish_reason }] });
});

test("reasoning converted to chat and back is the same", () => {
  const { choices } = responsesConverter.responseToChat(provider()) as { choices: [{ message: Json }] };
  const { request } = responsesConverter.requestFromChat(
    { model: "gpt-5", messages: [choices[0].message] },
    { hiddenReasoning: true },
  );
  expect(request["input"]).toMatchObject([
    { type: "reasoning", id: "rs_1", summary, encrypted_content: "secret" },
    { type: "message" },
    { type: "function_call" },
    { type: "custom_tool_call" },
  ]);
});

test("failures are errors, whole or as an event, flat or nested", () => {
  const error = { code: "server_error", message: "Broken." };
  expect(responsesFailure(provider())).toBeUndefined();
  expect(responsesFailure({ type: "response.completed", response: provider() })).toBeUndefined();
  expect(responsesConverter.responseToChat(provider({ status: "failed", error }))).toEqual({ error });
  expect(responsesFailure({ type: "response.failed", response: { status: "failed", error } })).toEqual(error);
  expect(responsesFailure({ type: "error", ...error, param: null, sequence_number: 3 })).toEqual(error);
  expect(responsesFailure({ type: "error", error: { ...error, type: "x" } })).toEqual({ ...error, type: "x" });
  expect(responsesFailure({ type: "response.failed", response: { status: "failed" } })).toEqual({
    message: "The model failed.",
  });
});

const toChat = (events: readonly Json[]) => {
  const stream = responsesConverter.streamToChat();
  return { chunks: events.flatMap((event) => stream.write(event)), stream };
};
const deltas = (events: readonly Json[]) =>
  toChat(events).chunks.map(({ choices }) => (choices as { delta: Json }[])[0]?.delta);

test("the provider's events are chunks, from the role to the usage", () => {
  const { chunks, stream } = toChat([
    { type: "response.created", response: provider({ status: "in_progress", output: [], usage: null }) },
    { type: "response.in_progress" },
    { type: "response.output_text.delta", output_index: 0, delta: "Hi", logprobs: [] },
    { type: "response.completed", response: provider({ output: [] }) },
  ]);
  const shared = { id: "resp_1", object: "chat.completion.chunk", created: 5, model: "gpt-5-2026" };
  expect(chunks).toEqual([
    { ...shared, choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }] },
    { ...shared, choices: [{ index: 0, delta: { content: "Hi" }, finish_reason: null }] },
    { ...shared, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
    { ...shared, choices: [], usage: stream.usage() },
  ]);
  expect(stream.usage()).toMatchObject({ prompt_tokens: 10, completion_tokens: 5 });
});

test("parts of reasoning are paragraphs, and its state comes at its end", () => {
  const delta = (summary_index: number, text: string) => ({
    type: "response.reasoning_summary_text.delta",
    output_index: 0,
    summary_index,
    delta: text,
  });
  const item = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "secret" };
  expect(
    deltas([
      delta(0, "O"),
      delta(0, "ne."),
      delta(1, "Two."),
      { type: "response.output_item.done", output_index: 0, item },
    ]),
  ).toEqual([
    { reasoning_content: "O" },
    { reasoning_content: "ne." },
    { reasoning_content: "\n\nTwo." },
    {
      reasoning_details: [
        { type: "reasoning.encrypted", data: "secret", id: "rs_1", format: "openai-responses-v1", index: 0 },
      ],
    },
  ]);
});

test("a call is whole without deltas, and not doubled with them", () => {
  const at = { output_index: 3 };
  const item = { type: "function_call", id: "fc_1", call_id: "call_a", name: "f", arguments: "" };
  const whole = { ...item, arguments: '{"a":1}' };
  const begun = { tool_calls: [{ index: 0, id: "call_a", type: "function", function: { name: "f", arguments: "" } }] };
  const rest = (given: string) => ({ tool_calls: [{ index: 0, function: { arguments: given } }] });
  expect(deltas([{ type: "response.output_item.done", ...at, item: whole }])).toEqual([
    { tool_calls: [{ index: 0, id: "call_a", type: "function", function: { name: "f", arguments: '{"a":1}' } }] },
  ]);
  expect(
    deltas([
      { type: "response.output_item.added", ...at, item },
      { type: "response.function_call_arguments.delta", ...at, delta: '{"a"' },
      { type: "response.function_call_arguments.done", ...at, arguments: '{"a":1}' },
      { type: "response.output_item.done", ...at, item: whole },
    ]),
  ).toEqual([begun, rest('{"a"'), rest(":1}")]);
});

test("a failing stream ends with an error chunk", () => {
  const error = { code: "server_error", message: "Broken." };
  expect(toChat([{ type: "response.failed", response: { status: "failed", error } }]).chunks).toEqual([{ error }]);
  expect(toChat([{ type: "error", ...error }]).chunks).toEqual([{ error }]);
});

const { native } = responsesConverter;
const identity = { model: "openai/gpt-5", created: 9, id: "resp_x" };

test("a native request changes only in model, cap, store and stored reasoning", () => {
  const request = {
    model: "openai/gpt-5",
    input: [
      { role: "user", content: "Hello" },
      { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "secret" },
      { type: "reasoning", id: "rs_2", summary: [{ type: "summary_text", text: "x" }], encrypted_content: null },
      { type: "reasoning", id: "rs_3", summary: [], content: [{ type: "reasoning_text", text: "x" }] },
    ],
    max_output_tokens: 500,
    store: true,
    metadata: { a: "b" },
    anything: { else: 1 },
  };
  const ignored = ignoredParams();
  const target = { model: "gpt-5", cap: 100, capField: "max_tokens" } as const;
  const { input, ...rest } = native.prepare(request, target, ignored);
  expect(rest).toEqual({
    model: "gpt-5",
    max_output_tokens: 100,
    store: false,
    metadata: { a: "b" },
    anything: { else: 1 },
  });
  expect(input).toEqual([request.input[0], request.input[1], request.input[3]]);
  expect(ignored.names()).toEqual(["input.reasoning"]);
  expect(native.prepare({ input: "Hello" }, { model: "gpt-5", cap: 1, capField: "max_tokens" })).toMatchObject({
    input: "Hello",
  });
});

test("a reasoning model's state is requested, in addition to the caller's own `include`", () => {
  const include = (hiddenReasoning: boolean, ...given: string[]) =>
    native.prepare({ input: "Hi", include: given }, { model: "m", cap: 1, capField: "max_tokens", hiddenReasoning })[
      "include"
    ];
  const state = "reasoning.encrypted_content";
  expect(include(true)).toEqual([state]);
  expect(include(true, state, "file_search_call.results")).toEqual([state, "file_search_call.results"]);
  expect(include(false, "file_search_call.results")).toEqual(["file_search_call.results"]);
});

test("a native response has our model id, and is billed by its usage", () => {
  const answer = provider({ billing: { payer: "developer" } });
  expect(native.finish(answer, identity, { input: 0, output: 0 })).toEqual({ ...answer, model: "openai/gpt-5" });
  expect(native.usage(answer)).toMatchObject({ prompt_tokens: 10, completion_tokens: 5 });
  expect(native.usage(provider({ usage: null }))).toBeUndefined();
});

const message = { id: "msg_1", type: "message", status: "completed", role: "assistant" };
const part = { type: "output_text", text: "Hello", annotations: [{ type: "url_citation", url: "x" }] };
const at = { item_id: "msg_1", output_index: 0, content_index: 0 };
const events: Json[] = [
  { type: "response.created", response: provider({ status: "in_progress", output: [], usage: null }) },
  { type: "response.output_item.added", output_index: 0, item: { ...message, content: [] } },
  { type: "response.content_part.added", ...at, part: { ...part, text: "", annotations: [] } },
  { type: "response.output_text.delta", ...at, delta: "Hello", logprobs: [], obfuscation: "x7" },
  { type: "response.output_item.done", output_index: 0, item: { ...message, content: [part] } },
  { type: "response.completed", response: provider({ output: [{ ...message, content: [part] }] }) },
].map((event, sequence_number) => ({ ...event, sequence_number }));

test("a native stream has our model id, and is billed by its usage", async () => {
  const stream = native.stream(identity);
  const text = events.map((event) => stream.write(event)).join("") + stream.end({ input: 0, output: 0 });
  expect(eventsOf(text)).toEqual(
    events.map((event) => ({
      ...event,
      ...(event["response"] !== undefined && { response: { ...(event["response"] as Json), model: "openai/gpt-5" } }),
    })),
  );
  expect(stream.usage()).toMatchObject({ prompt_tokens: 10, completion_tokens: 5 });
  expect(stream.outputBytes()).toBe("Hello".length);
  expect((await clientAnswer(text)).output_text).toBe("Hello");
});

test("a native stream that is cut ends with response.failed and error, numbered on", async () => {
  const stream = native.stream(identity);
  const text = events
    .slice(0, 4)
    .map((event) => stream.write(event))
    .join("");
  const failed = stream.fail?.(upstreamError("Broken off.")) ?? "";
  expect(eventsOf(failed)).toMatchObject([
    {
      type: "response.failed",
      sequence_number: 4,
      response: { id: "resp_1", model: "openai/gpt-5", status: "failed", error: { message: "Broken off." } },
    },
    { type: "error", sequence_number: 5, code: "upstream_error", message: "Broken off." },
  ]);
  await expect(clientAnswer(text + failed)).rejects.toThrow("Broken off.");
  const silent = native.stream(identity);
  silent.write(events[0] as Json);
  expect(eventsOf(silent.end({ input: 0, output: 0 }))).toMatchObject([{ type: "response.failed" }, { type: "error" }]);
});

test("an input of reasoning without state only is refused", () => {
  const input = [{ type: "reasoning", id: "rs_1", summary: [] }];
  expect(() => responsesConverter.native.prepare({ input }, { model: "m", cap: 1, capField: "max_tokens" })).toThrow(
    expect.objectContaining({ code: "invalid_value", param: "input" }),
  );
});
