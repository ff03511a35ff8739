import { expect, test } from "vitest";
import { ServiceError } from "#errors";
import { messagesConverter } from "../../workers/conversion/messages/index.ts";

type Json = Readonly<Record<string, unknown>>;

const request = (fields: Json = {}): Json => ({
  model: "claude-sonnet-4-6",
  max_tokens: 10_000,
  messages: [{ role: "user", content: "Hello" }],
  ...fields,
});
const converted = (fields: Json = {}) => messagesConverter.requestFromChat(request(fields));
const convertedRequest = (fields: Json = {}) => converted(fields).request;
const convertedMessages = (...messages: Json[]) => convertedRequest({ messages })["messages"];
const user = (...content: Json[]) => ({ role: "user", content });
const text = (value: string) => ({ type: "text", text: value });
const refusedParam = (fields: Json): string | undefined => {
  try {
    converted(fields);
  } catch (error) {
    return error instanceof ServiceError && error.code === "invalid_value" ? error.param : String(error);
  }
  return undefined;
};
const lookup = { type: "function", function: { name: "look", parameters: { properties: {} } } };

test("a plain request is converted completely", () => {
  const { request, ignored } = converted({
    stream: true,
    stream_options: { include_usage: true },
    temperature: 0.5,
    stop: "END",
    max_tokens: null,
    max_completion_tokens: 50,
    n: 1,
    logprobs: false,
    messages: [
      { role: "system", content: "Be kind." },
      { role: "developer", content: [text("Be "), text("brief.")] },
      { role: "user", content: "Hello" },
    ],
  });
  expect(request).toEqual({
    model: "claude-sonnet-4-6",
    max_tokens: 50,
    system: "Be kind.\n\nBe brief.",
    messages: [user(text("Hello"))],
    stream: true,
    temperature: 0.5,
    stop_sequences: ["END"],
  });
  expect(ignored).toEqual([]);
});

test("the smaller cap applies, and there always is one", () => {
  expect(convertedRequest({ max_tokens: 20, max_completion_tokens: 10 })["max_tokens"]).toBe(10);
  expect(convertedRequest({ max_tokens: undefined })["max_tokens"]).toBeTypeOf("number");
});

test("hints are ignored parameters", () => {
  const hints = {
    user: "u",
    metadata: { a: "b" },
    seed: 1,
    service_tier: "auto",
    prompt_cache_key: "k",
    safety_identifier: "s",
    presence_penalty: 0,
    frequency_penalty: 0,
    unknown_field: {},
  };
  expect(converted({ ...hints, store: null }).ignored).toEqual(Object.keys(hints));
});

test.each([
  ["top_logprobs", 3],
  ["frequency_penalty", -1],
  ["logit_bias", { "50256": -100 }],
  ["functions", [{ name: "f" }]],
  ["service_tier", "flex"],
  ["stop", ["\n"]],
  ["tool_choice", "required"],
  ["tool_choice", { type: "custom", custom: { name: "x" } }],
])("%s %j is refused", (field, value) => {
  expect(refusedParam({ [field]: value })).toBe(field);
});

test("schemas get a type, and the allowed tools of a choice are the only ones sent", () => {
  const strict = { type: "function", function: { name: "find", strict: true } };
  const tools = [lookup, strict];
  expect(convertedRequest({ tools })).toMatchObject({
    tools: [
      { name: "look", input_schema: { type: "object", properties: {} } },
      { name: "find", strict: true, input_schema: { type: "object" } },
    ],
  });
  expect(convertedRequest({ tools, tool_choice: "auto" })["tool_choice"]).toBeUndefined();
  const allowed = { type: "allowed_tools", allowed_tools: { mode: "required", tools: [lookup] } };
  expect(convertedRequest({ tools, tool_choice: allowed, parallel_tool_calls: false })).toMatchObject({
    tools: [{ name: "look" }],
    tool_choice: { type: "any", disable_parallel_tool_use: true },
  });
  expect(refusedParam({ tools: [lookup, { type: "function" }] })).toBe("tools[1].function.name");
});

test("files become documents or images by their type", () => {
  const file = (file_data: string) => ({ type: "file", file: { filename: "f", file_data } });
  expect(
    convertedMessages(
      user(
        file("data:application/pdf;base64,JVBE"),
        file("https://a.example/c.pdf"),
        file("data:text/plain;charset=utf-8;base64,SGk="),
        file("data:image/webp;base64,BBBB"),
      ),
    ),
  ).toEqual([
    user(
      { type: "document", title: "f", source: { type: "base64", media_type: "application/pdf", data: "JVBE" } },
      { type: "document", title: "f", source: { type: "url", url: "https://a.example/c.pdf" } },
      { type: "document", title: "f", source: { type: "text", media_type: "text/plain", data: "Hi" } },
      { type: "image", source: { type: "base64", media_type: "image/webp", data: "BBBB" } },
    ),
  ]);
  const at = "messages[0].content[0]";
  expect(refusedParam({ messages: [user(file("data:video/mp4;base64,AAAA"))] })).toBe(`${at}.file.file_data`);
  expect(refusedParam({ messages: [user({ type: "image_url", image_url: { url: "file:///x" } })] })).toBe(
    `${at}.image_url.url`,
  );
});

test("tool calls and results are converted, the results of one turn into one message", () => {
  const call = (id: string, args: unknown) => ({ id, type: "function", function: { name: "look", arguments: args } });
  const image = { type: "image_url", image_url: { url: "https://a.example/b.png" } };
  expect(
    convertedMessages(
      {
        role: "assistant",
        content: "Let me see.",
        tool_calls: [call("call.1", '{"at":"door"}'), call("call_2", ""), call("call_3", '{"at":')],
      },
      { role: "tool", tool_call_id: "call.1", content: "There" },
      { role: "tool", tool_call_id: "call_2", content: [text("a"), image] },
      { role: "tool", tool_call_id: "call_3", content: "" },
      { role: "user", content: "Well?" },
    ),
  ).toEqual([
    {
      role: "assistant",
      content: [
        text("Let me see."),
        { type: "tool_use", id: "call_1", name: "look", input: { at: "door" } },
        { type: "tool_use", id: "call_2", name: "look", input: {} },
        { type: "tool_use", id: "call_3", name: "look", input: { INVALID_JSON: '{"at":' } },
      ],
    },
    user(
      { type: "tool_result", tool_use_id: "call_1", content: "There" },
      {
        type: "tool_result",
        tool_use_id: "call_2",
        content: [text("a"), { type: "image", source: { type: "url", url: "https://a.example/b.png" } }],
      },
      { type: "tool_result", tool_use_id: "call_3" },
      text("Well?"),
    ),
  ]);
  expect(refusedParam({ messages: [{ role: "tool", content: "x" }] })).toBe("messages[0].tool_call_id");
  const nameless = { role: "assistant", tool_calls: [{ id: "a", type: "function", function: {} }] };
  expect(refusedParam({ messages: [nameless] })).toBe("messages[0].tool_calls[0].function.name");
});

test("the provider's own reasoning is sent unchanged, that of others is ignored", () => {
  const own = { type: "reasoning.text", text: "Hm", signature: "sig", format: "anthropic-claude-v1", index: 0 };
  const assistant = (fields: Json) => [
    { role: "user", content: "a" },
    { role: "assistant", content: "b", ...fields },
    { role: "user", content: "c" },
  ];
  const thought = (fields: Json) => {
    const { request, ignored } = converted({ messages: assistant(fields) });
    return { content: (request["messages"] as Json[])[1]?.["content"], ignored };
  };
  const redacted = { type: "reasoning.encrypted", data: "xyz", format: "anthropic-claude-v1", index: 1 };
  expect(thought({ reasoning_details: [own, redacted], reasoning_content: "Hm" })).toEqual({
    content: [
      { type: "thinking", thinking: "Hm", signature: "sig" },
      { type: "redacted_thinking", data: "xyz" },
      text("b"),
    ],
    ignored: [],
  });
  const other = { ...own, format: "openai-responses-v1" };
  expect(thought({ reasoning_details: [other], reasoning_content: "Hm" })).toEqual({
    content: [text("b")],
    ignored: ["reasoning_content"],
  });
  expect(thought({ reasoning_details: [{ ...own, signature: "" }] }).content).toEqual([text("b")]);
});

test("blank blocks, empty messages and trailing white space of a prefill are not sent", () => {
  expect(
    convertedMessages(
      { role: "user", content: " " },
      { role: "user", content: "a" },
      { role: "assistant", content: null },
      { role: "assistant", content: "b \n" },
    ),
  ).toEqual([user(text("a")), { role: "assistant", content: [text("b")] }]);
  expect(refusedParam({ messages: [{ role: "system", content: "only" }] })).toBe("messages");
});

test("a late system message follows the user's turn if the model supports it", () => {
  const messages = [
    { role: "system", content: "first" },
    { role: "user", content: "a" },
    { role: "assistant", content: "b" },
    { role: "system", content: "later" },
    { role: "user", content: "c" },
  ];
  const spoken = [user(text("a")), { role: "assistant", content: [text("b")] }, user(text("c"))];
  expect(convertedRequest({ messages })).toMatchObject({ system: "first\n\nlater", messages: spoken });
  expect(convertedRequest({ messages, model: "claude-opus-5-5" })).toMatchObject({
    system: "first",
    messages: [...spoken, { role: "system", content: [text("later")] }],
  });
});

test("breakpoints of messages, results and functions are at the block that they end", () => {
  const mark = { cache_control: { type: "ephemeral", ttl: "1h" } };
  const short = { cache_control: { type: "ephemeral" } };
  const call = { id: "a", type: "function", function: { name: "look", arguments: "{}" } };
  const { request, ignored } = converted({
    tools: [{ ...lookup, function: { ...lookup.function, ...mark } }],
    ...short,
    response_format: { type: "json_object" },
    messages: [
      { role: "system", content: "Be kind.", ...mark },
      { role: "user", content: [text("a"), text(" ")] },
      { role: "assistant", content: "b", tool_calls: [call], cache_control: null },
      { role: "tool", tool_call_id: "a", content: "c", ...short },
    ],
  });
  expect(ignored).toEqual([]);
  expect(request).toMatchObject({
    ...short,
    tools: [{ name: "look", ...mark }],
    system: [{ type: "text", text: "Be kind.", ...mark }, { text: expect.stringMatching(/JSON/) }],
    messages: [
      user(text("a")),
      { role: "assistant", content: [text("b"), { type: "tool_use", id: "a" }] },
      user({ type: "tool_result", tool_use_id: "a", content: "c", ...short }),
    ],
  });
  expect(JSON.stringify(request).split("cache_control")).toHaveLength(5);
  const five = Array.from({ length: 5 }, () => ({ role: "user", content: "x", ...mark }));
  expect(refusedParam({ messages: five })).toBe("messages[4].cache_control");
});

test("objects of a response schema are closed; JSON without a schema becomes an instruction", () => {
  const schema = {
    type: "object",
    properties: { list: { type: "array", items: { anyOf: [{ type: "object", properties: {} }, { type: "null" }] } } },
  };
  const response_format = { type: "json_schema", json_schema: { name: "n", schema } };
  expect(convertedRequest({ response_format })["output_config"]).toEqual({
    format: {
      type: "json_schema",
      schema: {
        type: "object",
        additionalProperties: false,
        properties: {
          list: {
            type: "array",
            items: { anyOf: [{ type: "object", properties: {}, additionalProperties: false }, { type: "null" }] },
          },
        },
      },
    },
  });
  expect(convertedRequest({ response_format: { type: "json_object" } })["system"]).toMatch(/JSON object/);
  expect(convertedRequest({ response_format: { type: "text" } })["output_config"]).toBeUndefined();
  expect(refusedParam({ response_format: { type: "grammar" } })).toBe("response_format.type");
});

const summarized = { type: "adaptive", display: "summarized" };
test.each([
  ["claude-haiku-4-5-20251001", "high", { thinking: { type: "enabled", budget_tokens: 8000 } }],
  ["claude-haiku-4-5-20251001", "low", { thinking: { type: "enabled", budget_tokens: 2048 } }],
  ["claude-3-7-sonnet-20250219", "medium", { thinking: { type: "enabled", budget_tokens: 8000 } }],
  ["claude-opus-4-20250514", "none", {}],
  ["claude-sonnet-4-6", "minimal", { thinking: summarized, output_config: { effort: "low" } }],
  ["claude-sonnet-4-6", "xhigh", { thinking: summarized, output_config: { effort: "high" } }],
  ["claude-opus-5-5", "xhigh", { thinking: summarized, output_config: { effort: "xhigh" } }],
  ["claude-opus-5-5", "none", { output_config: { effort: "low" } }],
  ["claude-fable-5", "none", { output_config: { effort: "low" } }],
  ["claude-sonnet-5-5", "none", { thinking: { type: "between_tools" } }],
  ["claude-haiku-5-5", "none", { thinking: { type: "disabled" } }],
  ["claude-opus-4-8", "none", {}],
])("for %s the effort %s becomes %j", (model, reasoning_effort, fields) => {
  const { model: _, max_tokens: __, messages: ___, ...rest } = convertedRequest({ model, reasoning_effort });
  expect(rest).toEqual(fields);
});

test("an effort that does not fit is an ignored parameter", () => {
  const model = "claude-haiku-4-5";
  expect(converted({ model, reasoning_effort: "high", max_tokens: 1000 })).toMatchObject({
    ignored: ["reasoning_effort"],
  });
  const forced = { tools: [lookup], tool_choice: "required", reasoning_effort: "high" };
  expect(converted({ ...forced, model }).ignored).toEqual(["reasoning_effort"]);
  expect(convertedRequest({ ...forced })).toMatchObject({ output_config: { effort: "high" } });
  expect(convertedRequest({ ...forced })["thinking"]).toBeUndefined();
});

test("sampling is sent to models that support it, one parameter of it, and not together with thinking", () => {
  expect(converted({ temperature: 1.7 })).toMatchObject({ request: { temperature: 1 }, ignored: ["temperature"] });
  expect(converted({ temperature: 0.2, top_p: 0.9, top_k: 5 })).toMatchObject({
    request: { temperature: 0.2, top_k: 5 },
    ignored: ["top_p"],
  });
  expect(convertedRequest({ top_p: 0.9 })["top_p"]).toBe(0.9);
  expect(convertedRequest({ temperature: 0.2, top_p: 0.9 })["top_p"]).toBeUndefined();
  for (const fields of [{ model: "claude-opus-5-5" }, { reasoning_effort: "low" }]) {
    const { request, ignored } = converted({ ...fields, temperature: 0.2, top_p: 1 });
    expect(request["temperature"]).toBeUndefined();
    expect(ignored).toEqual(["temperature"]);
  }
});

test("a model that always thinks cannot be forced to call a tool", () => {
  const forced = { tools: [lookup], tool_choice: "required" };
  const refused = expect.objectContaining({ code: "invalid_value", param: "tool_choice" });
  for (const model of ["claude-opus-5-5", "claude-sonnet-5-5", "claude-fable-5-1"])
    expect(() => convertedRequest({ ...forced, model })).toThrow(refused);
  for (const model of ["claude-opus-5", "claude-haiku-5-5", "another-providers"])
    expect(convertedRequest({ ...forced, model })["tool_choice"]).toEqual({ type: "any" });
});
