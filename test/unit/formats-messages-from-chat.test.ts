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
const crossed = (fields: Json = {}) => messagesConverter.requestFromChat(request(fields));
const made = (fields: Json = {}) => crossed(fields).request;
const turns = (...messages: Json[]) => made({ messages })["messages"];
const user = (...content: Json[]) => ({ role: "user", content });
const text = (value: string) => ({ type: "text", text: value });
const blamed = (fields: Json): string | undefined => {
  try {
    crossed(fields);
  } catch (error) {
    return error instanceof ServiceError && error.code === "invalid_value" ? error.param : String(error);
  }
  return undefined;
};
const lookup = { type: "function", function: { name: "look", parameters: { properties: {} } } };

test("a plain request crosses whole", () => {
  const { request, ignored } = crossed({
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

test("the least cap holds, and there is always one", () => {
  expect(made({ max_tokens: 20, max_completion_tokens: 10 })["max_tokens"]).toBe(10);
  expect(made({ max_tokens: undefined })["max_tokens"]).toBeTypeOf("number");
});

test("hints are left out by name", () => {
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
  expect(crossed({ ...hints, store: null }).ignored).toEqual(Object.keys(hints));
});

test.each([
  ["n", 2],
  ["logprobs", true],
  ["top_logprobs", 3],
  ["modalities", ["text", "audio"]],
  ["prediction", { type: "content", content: "x" }],
  ["presence_penalty", 0.5],
  ["frequency_penalty", -1],
  ["logit_bias", { "50256": -100 }],
  ["functions", [{ name: "f" }]],
  ["web_search_options", { search_context_size: "low" }],
  ["service_tier", "flex"],
  ["stop", ["\n"]],
  ["tool_choice", "required"],
  ["tool_choice", { type: "custom", custom: { name: "x" } }],
])("%s %j changes the meaning and is refused", (field, value) => {
  expect(blamed({ [field]: value })).toBe(field);
});

test("tools, the choice among them and parallel calls cross", () => {
  const strict = { type: "function", function: { name: "find", description: "Finds.", strict: true, parameters: {} } };
  const tools = [lookup, strict];
  expect(made({ tools, tool_choice: "required", parallel_tool_calls: false })).toMatchObject({
    tools: [
      { name: "look", input_schema: { type: "object", properties: {} } },
      { name: "find", description: "Finds.", strict: true, input_schema: { type: "object" } },
    ],
    tool_choice: { type: "any", disable_parallel_tool_use: true },
  });
  const choice = (tool_choice: unknown) => made({ tools, tool_choice })["tool_choice"];
  expect(choice("auto")).toBeUndefined();
  expect(choice("none")).toEqual({ type: "none" });
  expect(choice({ type: "function", function: { name: "look" } })).toEqual({ type: "tool", name: "look" });
  const allowed = { type: "allowed_tools", allowed_tools: { mode: "required", tools: [lookup] } };
  expect(made({ tools, tool_choice: allowed })).toMatchObject({
    tools: [{ name: "look" }],
    tool_choice: { type: "any" },
  });
  expect(blamed({ tools: [{ type: "custom", custom: { name: "sql" } }] })).toBe("tools[0].type");
  expect(blamed({ tools: [lookup, { type: "function" }] })).toBe("tools[1].function.name");
});

test("images and files cross by link and by bytes", () => {
  const url = "https://a.example/b.png";
  const file = (file_data: string) => ({ type: "file", file: { filename: "f", file_data } });
  expect(
    turns(
      user(
        { type: "image_url", image_url: { url, detail: "low" } },
        { type: "image_url", image_url: "data:image/png;base64,AAAA" },
        file("data:application/pdf;base64,JVBE"),
        file("https://a.example/c.pdf"),
        file("data:text/plain;charset=utf-8;base64,SGk="),
        file("data:image/webp;base64,BBBB"),
      ),
    ),
  ).toEqual([
    user(
      { type: "image", source: { type: "url", url } },
      { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
      { type: "document", title: "f", source: { type: "base64", media_type: "application/pdf", data: "JVBE" } },
      { type: "document", title: "f", source: { type: "url", url: "https://a.example/c.pdf" } },
      { type: "document", title: "f", source: { type: "text", media_type: "text/plain", data: "Hi" } },
      { type: "image", source: { type: "base64", media_type: "image/webp", data: "BBBB" } },
    ),
  ]);
  const at = "messages[0].content[0]";
  expect(blamed({ messages: [user(file("data:video/mp4;base64,AAAA"))] })).toBe(`${at}.file.file_data`);
  expect(blamed({ messages: [user({ type: "image_url", image_url: { url: "file:///x" } })] })).toBe(
    `${at}.image_url.url`,
  );
  expect(blamed({ messages: [user({ type: "input_audio", input_audio: { data: "A" } })] })).toBe(`${at}.type`);
});

test("calls and their results cross, the results of one turn in one message", () => {
  const call = (id: string, args: unknown) => ({ id, type: "function", function: { name: "look", arguments: args } });
  const image = { type: "image_url", image_url: { url: "https://a.example/b.png" } };
  expect(
    turns(
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
  expect(blamed({ messages: [{ role: "tool", content: "x" }] })).toBe("messages[0].tool_call_id");
  const nameless = { role: "assistant", tool_calls: [{ id: "a", type: "function", function: {} }] };
  expect(blamed({ messages: [nameless] })).toBe("messages[0].tool_calls[0].function.name");
});

test("the provider's own reasoning comes back unchanged, that of others is left out", () => {
  const own = { type: "reasoning.text", text: "Hm", signature: "sig", format: "anthropic-claude-v1", index: 0 };
  const assistant = (fields: Json) => [
    { role: "user", content: "a" },
    { role: "assistant", content: "b", ...fields },
    { role: "user", content: "c" },
  ];
  const thought = (fields: Json) => {
    const { request, ignored } = crossed({ messages: assistant(fields) });
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

test("blocks of white space, empty turns and a blank at the end of a beginning are not sent", () => {
  expect(
    turns(
      { role: "user", content: " " },
      { role: "user", content: "a" },
      { role: "assistant", content: null },
      { role: "assistant", content: "b \n" },
    ),
  ).toEqual([user(text("a")), { role: "assistant", content: [text("b")] }]);
  expect(blamed({ messages: [{ role: "system", content: "only" }] })).toBe("messages");
});

test("a later system message stays in its place where the model takes it, after the user's turn", () => {
  const messages = [
    { role: "system", content: "first" },
    { role: "user", content: "a" },
    { role: "assistant", content: "b" },
    { role: "system", content: "later" },
    { role: "user", content: "c" },
  ];
  const spoken = [user(text("a")), { role: "assistant", content: [text("b")] }, user(text("c"))];
  expect(made({ messages })).toMatchObject({ system: "first\n\nlater", messages: spoken });
  expect(made({ messages, model: "claude-opus-5-5" })).toMatchObject({
    system: "first",
    messages: [...spoken, { role: "system", content: [text("later")] }],
  });
});

test("a schema for the answer crosses with its objects closed, JSON without one as a word to the model", () => {
  const schema = {
    type: "object",
    properties: { list: { type: "array", items: { anyOf: [{ type: "object", properties: {} }, { type: "null" }] } } },
  };
  const response_format = { type: "json_schema", json_schema: { name: "n", schema } };
  expect(made({ response_format })["output_config"]).toEqual({
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
  expect(made({ response_format: { type: "json_object" } })["system"]).toMatch(/JSON object/);
  expect(made({ response_format: { type: "text" } })["output_config"]).toBeUndefined();
  expect(blamed({ response_format: { type: "grammar" } })).toBe("response_format.type");
});
