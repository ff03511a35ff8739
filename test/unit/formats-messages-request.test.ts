import { expect, test } from "vitest";
import { type ErrorCode, errorKinds, invalidValue, ServiceError } from "#errors";
import { countTokensCodec, messagesCodec } from "../../shared/formats/index.ts";
import { messageTypes } from "../support/message-types.ts";

type Json = Readonly<Record<string, unknown>>;

const request = (fields: Json = {}): Json => ({
  model: "claude-opus-5-5",
  max_tokens: 100,
  messages: [{ role: "user", content: "Hello" }],
  ...fields,
});
const said = (...content: Json[]): Json => request({ messages: [{ role: "user", content }] });
const parse = (body: unknown) => messagesCodec.parse(body, JSON.stringify(body).length);
const refusedParam = (body: unknown): string | undefined => {
  try {
    parse(body);
  } catch (error) {
    return error instanceof ServiceError && error.code === "invalid_value" ? error.param : String(error);
  }
  return undefined;
};

const base64 = (media_type: string, data: string) => ({ type: "base64", media_type, data });

test("parsing reads the model, the stream, the cap and the messages", () => {
  const body = request({ stream: true, system: "Be kind." });
  expect(parse(body)).toMatchObject({
    model: "claude-opus-5-5",
    stream: true,
    textBytes: "HelloBe kind.".length,
    size: { inputBytes: JSON.stringify(body).length, messages: 2, choices: 1, outputCap: 100 },
  });
  expect(parse(request())).toMatchObject({ stream: false, size: { messages: 1 }, uploads: [] });
});

test("media count as parts, not as bytes, in nested blocks too", () => {
  const image = { type: "image", source: base64("image/png", `iVBORw0KGgo${"A".repeat(5000)}`) };
  const document = { type: "document", source: base64("application/pdf", `JVBERi0${"B".repeat(7000)}`) };
  const cut = { type: "document", source: { type: "content", content: [image] } };
  const plain = { type: "document", source: { type: "text", media_type: "text/plain", data: "words" } };
  const result = { type: "tool_result", tool_use_id: "a", content: [image, document] };
  const call = parse(said(image, document, cut, plain, result));
  expect(call.size.parts.map(({ kind }) => kind)).toEqual(["image", "file", "image", "image", "file"]);
  expect(call.size.inputBytes).toBeLessThan(1500);
  expect([...call.features]).toEqual([
    ["image", "messages[0].content[4].content[0]"],
    ["file", "messages[0].content[4].content[1]"],
  ]);
});

test("the text of a request with tool calls or results is its whole body", () => {
  const call = { type: "tool_use", id: "a", name: "look", input: { at: "door" } };
  const result = { type: "tool_result", tool_use_id: "a", content: "There" };
  for (const message of [
    { role: "assistant", content: [call] },
    { role: "user", content: [result] },
  ]) {
    const body = request({ messages: [message] });
    expect(parse(body).textBytes).toBe(JSON.stringify(body).length);
  }
});

test("any kind of source may name an upload", () => {
  const call = parse(
    said(
      { type: "image", source: { type: "url", url: "upl_a" } },
      { type: "image", source: base64("image/png", "upl_b") },
      { type: "document", source: { type: "file", file_id: "upl_c" } },
    ),
  );
  expect(call.uploads).toEqual([
    { id: "upl_a", param: "messages[0].content[0].source.url", kind: "image" },
    { id: "upl_b", param: "messages[0].content[1].source.data", kind: "image" },
    { id: "upl_c", param: "messages[0].content[2].source.file_id" },
  ]);
});

test("features are noted with the field that requests them", () => {
  const features = (fields: Json) => [...parse(request(fields)).features];
  expect(features({ tools: [{ name: "now", input_schema: { type: "object" } }] })).toEqual([["tools", "tools"]]);
  expect(features({ output_config: { format: { type: "json_schema", schema: {} } } })).toEqual([
    ["json", "output_config.format"],
  ]);
  expect(features({ service_tier: "priority" })).toEqual([["service_tier", "service_tier"]]);
  // A lifetime without a price is dropped.
  expect(features({ cache_control: { type: "ephemeral", ttl: "1h" } })).toEqual([]);
});

test("the bound includes what tools add to the prompt", () => {
  const own = { name: "now", input_schema: { type: "object" } };
  const added = (tools: readonly Json[], fields: Json = {}) => {
    const body = request({ tools, ...fields });
    return parse(body).size.inputBytes - JSON.stringify(body).length;
  };
  expect(added([own])).toBe(512);
  expect(added([own, { type: "bash_20250124", name: "bash" }])).toBe(512 + 1024);
  expect(added([own, { type: "computer_20250124", name: "computer" }])).toBe(512 + 1024);
  expect(added([own, { type: "computer_toolset_20260801" }])).toBe(512 + 8192);
  // The provider repeats the definition of a tool at each reference to it.
  const found = { type: "tool_reference", tool_name: "now" };
  const result = { type: "tool_result", tool_use_id: "a", content: [found, found] };
  const messages = [{ role: "user", content: [result] }];
  expect(added([own], { messages })).toBe(512 + 2 * JSON.stringify(own).length);
});

test("data stored at the provider is refused, because it may be another tenant's", () => {
  const file = { type: "file", file_id: "file_011CNha8iCJcU1wXNR6q4V8w" };
  expect(refusedParam(request({ container: "container_1" }))).toBe("container");
  expect(refusedParam(request({ container: { id: "container_1" } }))).toBe("container");
  expect(refusedParam(request({ thread: { type: "continue", id: "x" } }))).toBe("thread");
  expect(refusedParam(request({ diagnostics: { previous_message_id: "msg_1" } }))).toBe(
    "diagnostics.previous_message_id",
  );
  expect(refusedParam(said({ type: "image", source: file }))).toBe("messages[0].content[0].source.type");
  expect(refusedParam(said({ type: "document", source: file }))).toBe("messages[0].content[0].source.type");
  expect(
    refusedParam(said({ type: "tool_result", tool_use_id: "a", content: [{ type: "document", source: file }] })),
  ).toBe("messages[0].content[0].content[0].source.type");
  expect(refusedParam(said({ type: "container_upload", file_id: "file_1" }))).toBe("messages[0].content[0].type");
});

test("features that run at the provider or are billed separately are refused", () => {
  const own = { name: "now", input_schema: { type: "object" } };
  const types = [
    "web_search_20250305",
    "web_fetch_20260318",
    "code_execution_20260521",
    "mcp_toolset",
    "advisor_20260301",
    "tool_search_tool_bm25_20251119",
    "bash_20250124x",
  ];
  const refusedParamOf = (type: string) => [type, refusedParam(request({ tools: [own, { type, name: "x" }] }))];
  expect(types.map(refusedParamOf)).toEqual(types.map((type) => [type, "tools[1].type"]));
  const callers = ["custom", "bash_20250124", "text_editor_20250728", "memory_20250818", "computer_20250124"];
  expect(callers.map(refusedParamOf)).toEqual(callers.map((type) => [type, undefined]));
  expect(refusedParam(request({ mcp_servers: [{ type: "url", url: "https://a.example", name: "a" }] }))).toBe(
    "mcp_servers",
  );
  expect(refusedParam(request({ fallbacks: [{ model: "claude-fable-5-2" }] }))).toBe("fallbacks");
  expect(refusedParam(request({ speed: "fast" }))).toBe("speed");
  expect(refusedParam(request({ inference_geo: "us" }))).toBe("inference_geo");
  const edits = [{ type: "clear_thinking_20251015" }, { type: "compact_20260112" }];
  expect(refusedParam(request({ context_management: { edits } }))).toBe("context_management.edits[1].type");
  const harmless = { mcp_servers: [], fallbacks: null, speed: "standard", inference_geo: "global", container: null };
  expect(refusedParam(request({ ...harmless, context_management: { edits: edits.slice(0, 1) } }))).toBeUndefined();
});

test("the first invalid field is named", () => {
  const { max_tokens: _, ...capless } = request();
  expect(refusedParam(capless)).toBe("max_tokens");
  expect(refusedParam(request({ messages: [] }))).toBe("messages");
  expect(refusedParam(request({ messages: [{ role: "tool", content: "x" }] }))).toBe("messages[0].role");
  expect(refusedParam(request({ temperature: 1.5 }))).toBe("temperature");
  expect(refusedParam(request({ tools: [{ input_schema: {} }] }))).toBe("tools[0].name");
  expect(refusedParam(said({ type: "text", text: 1 }))).toBe("messages[0].content[0].text");
  expect(refusedParam(said({ type: "input_audio" }))).toBe("messages[0].content[0].type");
  expect(refusedParam(said({ type: "image", source: { type: "url", url: "file:///etc/passwd" } }))).toBe(
    "messages[0].content[0].source.url",
  );
  expect(refusedParam(said({ type: "image", source: { type: { toString: 1 } } }))).toBe(
    "messages[0].content[0].source.type",
  );
  expect(refusedParam(request({ messages: [{ role: "assistant", content: [{ type: "tool_use", id: "a" }] }] }))).toBe(
    "messages[0].content[0].name",
  );
  const nested = { type: "tool_result", tool_use_id: "a" };
  expect(refusedParam(said({ ...nested, content: [nested] }))).toBe("messages[0].content[0].content[0].type");
});

test("requests of coding assistants are accepted", () => {
  const mark = { cache_control: { type: "ephemeral" } };
  const body = request({
    stream: true,
    system: [{ type: "text", text: "You write code.", ...mark }],
    thinking: { type: "adaptive", display: "omitted" },
    output_config: { effort: "xhigh" },
    context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
    metadata: { user_id: "u" },
    tools: [{ name: "Read", input_schema: { type: "object" }, eager_input_streaming: true, ...mark }],
    messages: [
      { role: "user", content: [{ type: "text", text: "Go", ...mark }] },
      { role: "system", content: "Be brief." },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "", signature: "s" },
          { type: "redacted_thinking", data: "d" },
          { type: "tool_use", id: "toolu_1", name: "Read", input: {}, caller: { type: "direct" } },
        ],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", is_error: true, content: "no" }] },
    ],
  });
  expect([...parse(body).features]).toEqual([["tools", "tools"]]);
});

test("counting accepts the same body without a cap", () => {
  const { max_tokens: _, ...body } = request();
  expect(countTokensCodec.parse(body, 100)).toMatchObject({
    model: "claude-opus-5-5",
    stream: false,
    textBytes: 5,
    size: { inputBytes: 100, messages: 1, choices: 1 },
  });
  expect(() => countTokensCodec.parse({ ...body, container: "c" }, 100)).toThrow("container");
});

test("a refused thread has the details that make clients send the whole conversation", () => {
  const error = invalidValue("thread", "Not here.");
  expect(JSON.parse(messagesCodec.error(error, "req_1"))).toEqual({
    type: "error",
    error: {
      type: "invalid_request_error",
      message: "Not here.",
      details: { error_code: "thread_unsupported_request", unsupported: ["thread"] },
    },
    request_id: "req_1",
  });
});

test("errors have the provider's types", () => {
  for (const code of Object.keys(errorKinds) as ErrorCode[]) {
    const error = new ServiceError({ code, message: "Why." });
    const body = { type: "error", error: { type: messageTypes[error.status], message: "Why." }, request_id: "req_1" };
    expect(messagesCodec.error(error, "req_1")).toBe(JSON.stringify(body));
    expect(messagesCodec.streamError(error, "req_1", true)).toBe(`event: error\ndata: ${JSON.stringify(body)}\n\n`);
  }
  expect(messagesCodec.ping).toBe('event: ping\ndata: {"type": "ping"}\n\n');
});
