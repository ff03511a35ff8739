import { expect, test } from "vitest";
import { messagesConverter } from "../../workers/conversion/messages/index.ts";

type Json = Readonly<Record<string, unknown>>;

const request = (fields: Json = {}): Json => ({
  model: "local/chat",
  max_tokens: 100,
  messages: [{ role: "user", content: "Hello" }],
  ...fields,
});
const converted = (fields: Json) => messagesConverter.requestToChat(request(fields));
const chat = (fields: Json) => converted(fields).request;
const messages = (...given: Json[]) => chat({ messages: given })["messages"];
const user = (...content: Json[]) => ({ role: "user", content });

test("a plain request is converted completely", () => {
  const { request, ignored } = converted({
    system: "Be kind.",
    stream: true,
    temperature: 0.5,
    top_p: 0.9,
    stop_sequences: ["END"],
  });
  expect(request).toEqual({
    model: "local/chat",
    max_tokens: 100,
    messages: [
      { role: "system", content: "Be kind." },
      { role: "user", content: "Hello" },
    ],
    stream: true,
    temperature: 0.5,
    top_p: 0.9,
    stop: ["END"],
  });
  expect(ignored).toEqual([]);
});

test("hints are ignored parameters, named once each and only if a header can carry the name", () => {
  const { request, ignored } = converted({
    metadata: { user_id: "u" },
    top_k: 3,
    service_tier: "auto",
    context_management: null,
    "bad\r\nname": 1,
    system: [{ type: "text", text: "a" }],
    messages: [user({ type: "text", text: "b" })],
  });
  expect(ignored).toEqual(["metadata", "top_k", "service_tier"]);
  expect(request["messages"]).toEqual([
    { role: "system", content: "a" },
    { role: "user", content: "b" },
  ]);
});

test("other fields of a tool are ignored, and tools of the provider are refused", () => {
  const tools = [{ name: "find", input_schema: { type: "object" }, input_examples: [{ a: "x" }] }];
  expect(converted({ tools }).ignored).toEqual(["input_examples"]);
  expect(() => chat({ tools: [{ type: "bash_20250124", name: "bash" }] })).toThrow("tools[0].type");
});

test("ids of uploads stay in place of images", () => {
  const image = (source: Json) => ({ type: "image", source });
  expect(
    messages(
      user(
        { type: "text", text: "What is it?" },
        image({ type: "base64", media_type: "image/png", data: "upl_a" }),
        image({ type: "file", file_id: "upl_b" }),
      ),
    ),
  ).toEqual([
    user(
      { type: "text", text: "What is it?" },
      ...["upl_a", "upl_b"].map((url) => ({ type: "image_url", image_url: { url } })),
    ),
  ]);
});

test("documents become files or text", () => {
  const pdf = { type: "base64", media_type: "application/pdf", data: "JVBE" };
  const { request, ignored } = converted({
    messages: [
      user(
        { type: "document", source: pdf, title: "Plan", context: "Old", citations: { enabled: true } },
        { type: "document", source: { type: "url", url: "https://a.example/b.pdf" } },
        { type: "document", source: { type: "text", media_type: "text/plain", data: "Words" }, title: "Note" },
        { type: "document", source: { type: "content", content: [{ type: "text", text: "Cut" }] } },
        { type: "search_result", title: "T", source: "S", content: [{ type: "text", text: "Found" }] },
      ),
    ],
  });
  expect(request["messages"]).toEqual([
    user(
      { type: "text", text: "Old" },
      { type: "file", file: { filename: "Plan", file_data: "data:application/pdf;base64,JVBE" } },
      { type: "file", file: { filename: "document.pdf", file_data: "https://a.example/b.pdf" } },
      { type: "text", text: "Note\n\nWords" },
      { type: "text", text: "Cut" },
      { type: "text", text: "T\n\nS\n\nFound" },
    ),
  ]);
  expect(ignored).toEqual(["citations"]);
});

test("tool calls and results are converted, with images and errors", () => {
  const image = { type: "image", source: { type: "url", url: "https://a.example/b.png" } };
  expect(
    messages(
      {
        role: "assistant",
        content: [
          { type: "text", text: "Let me see." },
          { type: "tool_use", id: "toolu_1", name: "look", input: { at: "door" } },
          { type: "tool_use", id: "toolu_2", name: "listen", input: {} },
        ],
      },
      user(
        { type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "text", text: "There" }, image] },
        { type: "tool_result", tool_use_id: "toolu_2", content: "no ears", is_error: true },
        { type: "text", text: "Well?" },
      ),
    ),
  ).toEqual([
    {
      role: "assistant",
      content: "Let me see.",
      tool_calls: [
        { id: "toolu_1", type: "function", function: { name: "look", arguments: '{"at":"door"}' } },
        { id: "toolu_2", type: "function", function: { name: "listen", arguments: "{}" } },
      ],
    },
    { role: "tool", tool_call_id: "toolu_1", content: "There" },
    { role: "tool", tool_call_id: "toolu_2", content: "Error: no ears" },
    user(
      { type: "text", text: "Of the result of toolu_1:" },
      { type: "image_url", image_url: { url: "https://a.example/b.png" } },
      { type: "text", text: "Well?" },
    ),
  ]);
});

test("signed thinking becomes reasoning details, unsigned thinking is another model's reasoning", () => {
  const format = "anthropic-claude-v1";
  const content = [
    { type: "thinking", thinking: "Hm", signature: "sig" },
    { type: "thinking", thinking: "unsigned", signature: "" },
    { type: "redacted_thinking", data: "xyz" },
  ];
  expect(messages({ role: "assistant", content: [...content, { type: "text", text: "So" }] })).toEqual([
    {
      role: "assistant",
      content: "So",
      reasoning_content: "unsigned",
      reasoning_details: [
        { type: "reasoning.text", text: "Hm", signature: "sig", format, index: 0 },
        { type: "reasoning.encrypted", data: "xyz", format, index: 1 },
      ],
    },
  ]);
  expect(messages({ role: "assistant", content: content.slice(1, 2) })).toEqual([]);
});

test("system messages keep their position", () => {
  expect(messages({ role: "user", content: "a" }, { role: "system", content: "b" })).toEqual([
    { role: "user", content: "a" },
    { role: "system", content: "b" },
  ]);
});

test.each([
  [{ thinking: { type: "disabled" } }, "none"],
  [{ thinking: { type: "enabled", budget_tokens: 2000 } }, "low"],
  [{ thinking: { type: "enabled", budget_tokens: 10_000 } }, "medium"],
  [{ thinking: { type: "enabled", budget_tokens: 32_000 } }, "high"],
  [{ thinking: { type: "adaptive" }, output_config: { effort: "xhigh" } }, "xhigh"],
  [{ thinking: { type: "adaptive" } }, undefined],
])("thinking %j is the effort %s", (fields, effort) => {
  expect(chat(fields)["reasoning_effort"]).toBe(effort);
});

test("output_format is read like output_config.format", () => {
  const format = { type: "json_schema", schema: { type: "object" } };
  expect(chat({ output_format: format })["response_format"]).toEqual({
    type: "json_schema",
    json_schema: { name: "answer", schema: format.schema, strict: true },
  });
  expect(() => chat({ output_config: { format: { type: "xml" } } })).toThrow("output_config.format.type");
});

test("blocks without an equivalent in chat are refused by name", () => {
  const block = { type: "server_tool_use", id: "a", name: "web_search", input: {} };
  expect(() => messages({ role: "assistant", content: [block] })).toThrow("messages[0].content[0].type");
  expect(() => messages(user({ type: "image", source: { type: "file", file_id: "file_1" } }))).toThrow(
    "messages[0].content[0].source.type",
  );
});

test("uploads become links or bytes, in nested blocks too", () => {
  const image = (source: Json) => ({ type: "image", source });
  const resolved = messagesConverter.resolveUploads(
    request({
      messages: [
        { role: "user", content: "as it is" },
        user(image({ type: "url", url: "upl_a" }), {
          type: "tool_result",
          tool_use_id: "t",
          content: [image({ type: "file", file_id: "upl_b" })],
        }),
        user({ type: "document", source: { type: "content", content: [image({ type: "url", url: "upl_a" })] } }),
      ],
    }),
    ({ id, param }) => {
      expect(param).toMatch(/\.source\.(url|file_id)$/);
      return {
        mime: "image/png",
        base64: "AAAA",
        address: id === "upl_a" ? "https://s.example/a" : "data:image/png;base64,AAAA",
      };
    },
  );
  const link = image({ type: "url", url: "https://s.example/a" });
  expect(resolved["messages"]).toEqual([
    { role: "user", content: "as it is" },
    user(link, {
      type: "tool_result",
      tool_use_id: "t",
      content: [image({ type: "base64", media_type: "image/png", data: "AAAA" })],
    }),
    user({ type: "document", source: { type: "content", content: [link] } }),
  ]);
});
