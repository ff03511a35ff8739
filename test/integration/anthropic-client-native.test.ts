import type Anthropic from "@anthropic-ai/sdk";
import { describe, expect, test } from "vitest";
import { asking, nativeModel, newCaller } from "../support/anthropic-client-setup.ts";
import { claudeName, formatsService } from "../support/formats-service.ts";

const running = formatsService();

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const pdf = Buffer.from("%PDF-1.4\n%%EOF\n").toString("base64");

const image = (source: Anthropic.ImageBlockParam["source"]) => ({ type: "image" as const, source });
const base64 = image({ type: "base64", media_type: "image/png", data: png });
const byUrl = image({ type: "url", url: "https://example.com/a.png" });
const document = {
  type: "document" as const,
  source: { type: "base64" as const, media_type: "application/pdf" as const, data: pdf },
  title: "A paper",
};
const withContent = (model: string, ...content: Anthropic.ContentBlockParam[]) => ({
  ...asking(model),
  messages: [{ role: "user" as const, content: [...content, { type: "text" as const, text: "What is it?" }] }],
});

const toolResults = [
  { role: "user", content: "weather and time?" },
  {
    role: "assistant",
    content: [
      { type: "text", text: "I look." },
      { type: "tool_use", id: "toolu_1", name: "look", input: { at: "Oslo" } },
      { type: "tool_use", id: "toolu_2", name: "look", input: { at: "Rome" } },
    ],
  },
  {
    role: "user",
    content: [
      { type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "text", text: "rain" }, base64] },
      { type: "tool_result", tool_use_id: "toolu_2", is_error: true, content: "no clock" },
      { type: "text", text: "Well?" },
    ],
  },
];

/** Known and unknown fields of a request. */
const everything = {
  ...asking(nativeModel),
  messages: toolResults,
  system: [
    { type: "text", text: "Be brief.", cache_control: { type: "ephemeral", ttl: "1h" } },
    { type: "text", text: "Be kind.", citations: null },
  ],
  metadata: { user_id: "user-1" },
  service_tier: "auto",
  stop_sequences: ["\n\nHuman:", "END"],
  temperature: 0.5,
  top_p: 0.9,
  top_k: 40,
  tools: [
    {
      name: "look",
      description: "Looks",
      input_schema: { type: "object", properties: { at: { type: ["string", "null"], default: null } } },
      cache_control: { type: "ephemeral" },
      input_examples: [{ at: "x" }],
      eager_input_streaming: true,
    },
    { type: "bash_20250124", name: "bash" },
  ],
  tool_choice: { type: "auto", disable_parallel_tool_use: true },
  thinking: { type: "enabled", budget_tokens: 500, display: "summarized" },
  output_config: { effort: "low" },
  context_management: { edits: [{ type: "clear_tool_uses_20250919", keep: { type: "tool_uses", value: 3 } }] },
  cache_control: { type: "ephemeral" },
  inference_geo: "global",
  field_unknown: { deep: [1.5, null, { a: "ä" }], empty: {} },
};

describe("the provider receives what the caller sent", () => {
  test.each([
    ["JSON", {}],
    ["stream", { stream: true }],
  ])("the body with only the model changed: %s", async (_, more) => {
    const { customer } = await newCaller(running);
    const response = await customer.post("/v1/messages", { ...everything, ...more });
    expect(response.status).toBe(200);
    expect(response.headers.get("x-ignored-params")).toBeNull();
    await response.text();
    expect(running.anthropic.requests[0]).toMatchObject({ method: "POST", path: "/v1/messages" });
    expect(running.anthropic.requests[0]?.body).toEqual({ ...everything, ...more, model: claudeName });
  });

  test("max_tokens is limited to the model's maximum", async () => {
    const { client } = await newCaller(running, "10");
    await client.messages.stream({ ...asking(nativeModel), max_tokens: 500_000 }).done();
    expect(running.anthropic.requests[0]?.body["max_tokens"]).toBe(128_000);
  });

  test("anthropic-version and anthropic-beta, and no other header of the caller", async () => {
    const { client } = await newCaller(running);
    await client.messages.create(asking(nativeModel));
    await client.beta.messages.create({ ...asking(nativeModel), betas: ["one-2026-01-01", "two-2026-02-02"] });
    const headers = { "anthropic-version": "2023-06-01", "anthropic-beta": "three-2026-03-03", "x-secret": "mine" };
    await client.messages.stream(asking(nativeModel), { headers }).done();
    expect(
      running.anthropic.requests.map(({ headers }) => [headers["anthropic-version"], headers["anthropic-beta"]]),
    ).toEqual([
      // The client's own default.
      ["2026-10-21", undefined],
      ["2026-10-21", "one-2026-01-01,two-2026-02-02"],
      ["2023-06-01", "three-2026-03-03"],
    ]);
    for (const { path, headers } of running.anthropic.requests) {
      expect(path).toBe("/v1/messages");
      expect(headers["x-api-key"]).toBe("sk-ant-operator");
      expect(Object.keys(headers).filter((name) => /^x-(secret|stainless)|authorization/.test(name))).toEqual([]);
      expect(headers["user-agent"]).not.toMatch(/anthropic/i);
    }
  });

  test("a request without anthropic-version has the documented one", async () => {
    const { customer } = await newCaller(running);
    expect((await customer.post("/v1/messages", asking(nativeModel))).status).toBe(200);
    expect(running.anthropic.requests[0]?.headers["anthropic-version"]).toBe("2023-06-01");
  });
});

describe("the caller receives what the provider sent", () => {
  const content = [
    { type: "text", text: "Hi", citations: null },
    { type: "block_unknown", value: { deep: [1, null] } },
  ];
  const usage = { input_tokens: 5, output_tokens: 7, service_tier: "priority", usage_unknown: 1 };

  test.each([claudeName, nativeModel])("JSON: every field, with the model as asked for: %s", async (model) => {
    const { client } = await newCaller(running);
    running.anthropic.respond({ content, usage, stopReason: "reason_unknown" });
    const message = await client.messages.create(asking(model));
    expect(message).toMatchObject({
      id: "msg_mock",
      model,
      content,
      stop_reason: "reason_unknown",
      usage,
    });
  });

  test.each([claudeName, nativeModel])(
    "stream: every event, unknown ones too, with the model as asked for: %s",
    async (model) => {
      const { client } = await newCaller(running);
      const events = [
        {
          type: "message_start",
          message: {
            id: "msg_1",
            type: "message",
            role: "assistant",
            model: "claude-of-the-provider",
            content: [],
            stop_reason: null,
            stop_sequence: null,
            usage: { input_tokens: 5, output_tokens: 1 },
            field_unknown: 1,
          },
        },
        { type: "content_block_start", index: 0, content_block: { type: "block_unknown", value: 1 } },
        { type: "content_block_delta", index: 0, delta: { type: "delta_unknown", value: 2 } },
        { type: "event_unknown", value: [null] },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 9 } },
        { type: "message_stop", field_unknown: true },
      ];
      running.anthropic.respond({ events });
      const stream = await client.messages.create({ ...asking(model), stream: true });
      const [first, ...rest] = await Array.fromAsync(stream);
      expect(first).toEqual({ ...events[0], message: { ...events[0]?.message, model } });
      expect(rest).toEqual(events.slice(1));
    },
  );
});

test("images and documents reach the provider unchanged", async () => {
  const { client } = await newCaller(running, "20");
  const blocks: Anthropic.ContentBlockParam[] = [
    base64,
    byUrl,
    { ...document, citations: { enabled: true }, cache_control: { type: "ephemeral" } },
    { type: "document", source: { type: "url", url: "https://example.com/a.pdf" } },
    { type: "document", source: { type: "text", media_type: "text/plain", data: "Rain." }, context: "Weather" },
    { type: "document", source: { type: "content", content: [{ type: "text", text: "Sun." }, base64] } },
    {
      type: "search_result",
      source: "https://example.com",
      title: "Found",
      content: [{ type: "text", text: "Snow." }],
      citations: { enabled: true },
    },
  ];
  const params = withContent(claudeName, ...blocks);
  await client.messages.create(params);
  expect(running.anthropic.requests[0]?.body).toEqual(params);
});

describe("thinking state", () => {
  const state: Anthropic.ContentBlock[] = [
    { type: "thinking", thinking: "Let me see. It is easy.", signature: "c2lnbmF0dXJl" },
    { type: "redacted_thinking", data: "ZW5jcnlwdGVk" },
  ];
  const call = {
    type: "tool_use" as const,
    id: "toolu_1",
    name: "look",
    input: { at: "x" },
    caller: { type: "direct" as const },
  };
  const tools = [{ name: "look", input_schema: { type: "object" as const, properties: { at: {} } } }];
  const thinking = { type: "enabled" as const, budget_tokens: 1_024 };
  const params = { ...asking(claudeName), max_tokens: 4_000, thinking, tools };

  test.each([
    ["JSON", false],
    ["a stream", true],
  ])("%s, signed or redacted, returns to the provider unchanged in the next turn", async (_, isStream) => {
    const { client } = await newCaller(running);
    running.anthropic.respond({ content: [...state, call].map((block) => ({ ...block })) });
    const thought: string[] = [];
    const signed: string[] = [];
    const streamed = () =>
      client.messages
        .stream(params)
        .on("thinking", (delta) => thought.push(delta))
        .on("signature", (signature) => signed.push(signature))
        .finalMessage();
    const first = isStream ? await streamed() : await client.messages.create(params);
    expect(thought.length > 1).toBe(isStream);
    expect([thought.join(""), signed]).toEqual(isStream ? ["Let me see. It is easy.", ["c2lnbmF0dXJl"]] : ["", []]);
    expect(first.content).toEqual([...state, call]);
    expect(first.stop_reason).toBe("tool_use");

    const result = { type: "tool_result" as const, tool_use_id: "toolu_1", content: "done" };
    const messages: Anthropic.MessageParam[] = [
      ...params.messages,
      { role: "assistant", content: first.content },
      { role: "user", content: [result] },
    ];
    await client.messages.create({ ...params, messages });
    expect(running.anthropic.requests[1]?.body).toEqual({ ...params, messages });
  });
});
