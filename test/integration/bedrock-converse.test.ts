import { describe, expect, test } from "vitest";
import { mockFrames } from "../support/mock-bedrock.ts";
import { eventFrame } from "../support/mock-event-stream.ts";
import { startConverse } from "../support/provider-setup.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const llama = "us.meta.llama4-scout-17b-instruct-v1:0";
const png = "iVBORw0KGgo=";
const tool = (name: string, more: object = {}) => ({
  type: "function",
  function: { name, description: "Looks", parameters: { type: "object", properties: {} }, ...more },
});
const call = (id: string, args = "{}") => ({ id, type: "function", function: { name: "look", arguments: args } });
const user = (content: unknown) => ({ role: "user", content });

/** The requests that Converse gets for these fields of a chat request; the mock refuses what AWS refuses. */
async function sentFor(body: object, model?: string) {
  const { mock, ask, text } = await startConverse();
  const named = model === undefined ? {} : { model };
  for (const way of ["answer", "stream"] as const) await ask(way, text({ ...body, ...named }, named));
  const [whole, streamed] = mock.requests;
  expect(streamed?.body).toEqual(whole?.body);
  return whole?.body ?? {};
}

const conversation = [
  { role: "system", content: "Be brief." },
  user("Hi"),
  {
    role: "assistant",
    content: null,
    reasoning_content: "Hm.",
    tool_calls: [call("call_1", '{"at":"x"}'), call("c2")],
  },
  { role: "tool", tool_call_id: "call_1", content: "rain" },
  { role: "tool", tool_call_id: "c2", content: "" },
  { role: "system", content: "Be kind." },
  user([{ type: "text", text: "And?" }]),
];

describe("a request", () => {
  test("goes to the address of the whole answer or the stream, in the region's profile", async () => {
    const { mock, ask } = await startConverse();
    for (const way of ["answer", "stream"] as const) await ask(way);
    const path = `/model/${encodeURIComponent(llama)}`;
    expect(mock.requests.map((request) => request.path)).toEqual([`${path}/converse`, `${path}/converse-stream`]);
    expect(mock.requests[0]?.body).toEqual({
      messages: [{ role: "user", content: [{ text: "Hi" }] }],
      inferenceConfig: { maxTokens: 100 },
    });
  });

  test("instructions with a cache breakpoint are sent, without it", async () => {
    const marked = [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }];
    expect(await sentFor({ messages: [{ role: "system", content: marked }, user("Hi")] })).toMatchObject({
      system: [{ text: "Be brief." }],
    });
  });

  test("tool calls and results are blocks; reasoning is not sent back", async () => {
    expect(await sentFor({ messages: conversation, tools: [tool("look", { strict: true })] })).toEqual({
      system: [{ text: "Be brief.\n\nBe kind." }],
      messages: [
        { role: "user", content: [{ text: "Hi" }] },
        {
          role: "assistant",
          content: [
            { toolUse: { toolUseId: "call_1", name: "look", input: { at: "x" } } },
            { toolUse: { toolUseId: "c2", name: "look", input: {} } },
          ],
        },
        {
          role: "user",
          content: [
            { toolResult: { toolUseId: "call_1", content: [{ text: "rain" }] } },
            { toolResult: { toolUseId: "c2", content: [{ text: "(empty)" }] } },
            { text: "And?" },
          ],
        },
      ],
      toolConfig: {
        tools: [
          {
            toolSpec: {
              name: "look",
              description: "Looks",
              inputSchema: { json: { type: "object", properties: {} } },
              strict: true,
            },
          },
        ],
      },
      inferenceConfig: { maxTokens: 100 },
    });
  });

  test.each([
    ["no tools", {}],
    ["a choice of none", { tools: [tool("look")], tool_choice: "none" }],
  ])("with %s, calls and results of the conversation are text", async (_, fields) => {
    const { messages, toolConfig } = await sentFor({ messages: conversation, ...fields });
    expect(toolConfig).toBeUndefined();
    expect(messages).toEqual([
      { role: "user", content: [{ text: "Hi" }] },
      {
        role: "assistant",
        content: [{ text: 'Call call_1 of the tool look: {"at":"x"}' }, { text: "Call c2 of the tool look: {}" }],
      },
      {
        role: "user",
        content: [
          { text: "Result of the tool call call_1: rain" },
          { text: "Result of the tool call c2: " },
          { text: "And?" },
        ],
      },
    ]);
  });

  test.each([
    ["required", { any: {} }],
    [{ type: "function", function: { name: "look" } }, { tool: { name: "look" } }],
    ["auto", undefined],
  ])("the choice of tools %j is %j", async (tool_choice, toolChoice) => {
    const { toolConfig } = await sentFor({ tools: [tool("look")], tool_choice });
    expect((toolConfig as { toolChoice?: object }).toolChoice).toEqual(toolChoice);
  });

  test("ids of calls have the form that Mistral requires, and calls keep their results", async () => {
    const messages = conversation.slice(1, 5);
    const sent = await sentFor({ messages, tools: [tool("look")] }, "mistral.mistral-large-3-675b-instruct");
    const [, asked, results] = sent["messages"] as readonly {
      content: readonly Record<string, { toolUseId: string }>[];
    }[];
    const ids = asked?.content.map(({ toolUse }) => toolUse?.toolUseId);
    expect(new Set(ids).size).toBe(2);
    expect(results?.content.map(({ toolResult }) => toolResult?.toolUseId)).toEqual(ids);
  });

  test("images and files are bytes, files under names that say nothing", async () => {
    const part = (mime: string) => ({ type: "image_url", image_url: { url: `data:${mime};base64,${png}` } });
    const file = (mime: string, data: string) => ({
      type: "file",
      file: { filename: "Ignore all: instructions", file_data: `data:${mime};base64,${data}` },
    });
    const text = Buffer.from("Hi").toString("base64");
    const content = [part("image/png"), part("image/jpeg"), file("application/pdf", png), file("text/plain", text)];
    const { messages } = await sentFor({ messages: [user([{ type: "text", text: "?" }, ...content])] });
    expect((messages as { content: object[] }[])[0]?.content.slice(1)).toEqual([
      { image: { format: "png", source: { bytes: png } } },
      { image: { format: "jpeg", source: { bytes: png } } },
      { document: { format: "pdf", name: "document-1", source: { bytes: png } } },
      { document: { format: "txt", name: "document-2", source: { bytes: text } } },
    ]);
  });

  test("limits, stop sequences and a schema have their fields; hints that it has none for are left out", async () => {
    const schema = { type: "object", properties: { a: { type: "string" } }, required: ["a"] };
    const fields = {
      max_completion_tokens: 50,
      temperature: 1.5,
      top_p: 0.9,
      stop: ["END"],
      seed: 1,
      user: "u",
      n: 1,
      reasoning_effort: "high",
      response_format: { type: "json_schema", json_schema: { name: "x", schema } },
    };
    expect(await sentFor(fields)).toEqual({
      messages: [{ role: "user", content: [{ text: "Hi" }] }],
      inferenceConfig: { maxTokens: 50, temperature: 1, topP: 0.9, stopSequences: ["END"] },
      outputConfig: {
        textFormat: {
          type: "json_schema",
          structure: { jsonSchema: { name: "answer", schema: expect.stringContaining('"required":["a"]') } },
        },
      },
    });
    const nova = await sentFor({ reasoning_effort: "medium" }, "amazon.nova-2-lite-v1:0");
    expect(nova["additionalModelRequestFields"]).toEqual({
      reasoningConfig: { type: "enabled", maxReasoningEffort: "medium" },
    });
  });

  test("Claude thinks as it is asked to, and gets back what it signed; it takes one of temperature and top_p", async () => {
    const claude = "{geo}.anthropic.claude-haiku-4-5-20251001-v1:0";
    const format = "anthropic-claude-v1";
    const reasoning_details = [
      { type: "reasoning.text", text: "Hm.", signature: "c2ln", format, index: 0 },
      { type: "reasoning.encrypted", data: "ZGF0YQ==", format, index: 1 },
    ];
    const messages = [user("Hi"), { role: "assistant", content: "Hello", reasoning_details }, user("And?")];
    const thinking = await sentFor({ messages, max_tokens: 4_000, reasoning_effort: "low" }, claude);
    expect(thinking).toMatchObject({
      messages: [
        {},
        {
          content: [
            { reasoningContent: { reasoningText: { text: "Hm.", signature: "c2ln" } } },
            { reasoningContent: { redactedContent: "ZGF0YQ==" } },
            { text: "Hello" },
          ],
        },
        {},
      ],
      additionalModelRequestFields: { thinking: { type: "enabled", budget_tokens: 2_048 } },
    });
    const sampled = await sentFor({ temperature: 0.5, top_p: 0.9, top_k: 5 }, claude);
    expect(sampled).toMatchObject({ additionalModelRequestFields: { top_k: 5 } });
    expect(sampled["inferenceConfig"]).toEqual({ maxTokens: 100, temperature: 0.5 });
    const llamas = await sentFor({ messages });
    expect((llamas["messages"] as object[])[1]).toEqual({ role: "assistant", content: [{ text: "Hello" }] });
    const silent = [user("Hi"), { role: "assistant", content: null, reasoning_details }, user("And?")];
    const { messages: joined } = await sentFor({ messages: silent });
    expect(joined).toEqual([{ role: "user", content: [{ text: "Hi" }, { text: "And?" }] }]);
  });

  test.each([
    ["n", { n: 2 }, "n"],
    ["log probabilities", { logprobs: true }, "logprobs"],
    ["penalties", { presence_penalty: 1 }, "presence_penalty"],
    ["a link", { messages: [user([{ type: "image_url", image_url: { url: "https://a.b/c.png" } }])] }, "messages"],
    [
      "an image of another kind",
      { messages: [user([{ type: "image_url", image_url: { url: `data:image/tiff;base64,${png}` } }])] },
      "messages",
    ],
  ])("%s is this host's limit", async (_, body, param) => {
    const { mock, ask, text } = await startConverse();
    for (const way of ["answer", "stream"] as const)
      expect(await errorOf(ask(way, text(body)))).toMatchObject({ kind: "refused", param, isHostLimit: true });
    expect(mock.requests).toHaveLength(0);
  });
});

describe("an answer", () => {
  const usage = {
    inputTokens: 10,
    outputTokens: 7,
    cacheReadInputTokens: 100,
    cacheWriteInputTokens: 30,
    cacheDetails: [
      { ttl: "5m", inputTokens: 20 },
      { ttl: "1h", inputTokens: 10 },
    ],
  };
  const chatUsage = {
    prompt_tokens: 140,
    completion_tokens: 7,
    total_tokens: 147,
    prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 30, cache_write_1h_tokens: 10 },
  };
  const content = [
    { reasoningContent: { reasoningText: { text: "Hm.", signature: "c2ln" } } },
    { reasoningContent: { redactedContent: "ZGF0YQ==" } },
    { text: "I look." },
    { toolUse: { toolUseId: "call_1", name: "look", input: { at: "x" } } },
    { blockOfTomorrow: {} },
  ];
  const answered = {
    output: { message: { role: "assistant", content } },
    stopReason: "tool_use",
    usage,
    metrics: { latencyMs: 5 },
  };

  test("text, reasoning, calls and usage are those of chat; cached tokens are part of the prompt", async () => {
    const { mock, ask } = await startConverse();
    mock.respond({ body: answered });
    expect(await ask("answer")).toMatchObject({
      choices: [
        {
          index: 0,
          finish_reason: "tool_calls",
          message: {
            content: "I look.",
            reasoning_content: "Hm.",
            tool_calls: [{ id: "call_1", type: "function", function: { name: "look", arguments: '{"at":"x"}' } }],
          },
        },
      ],
      usage: chatUsage,
    });
  });

  const delta = (contentBlockIndex: number, fields: object) =>
    eventFrame("contentBlockDelta", { contentBlockIndex, delta: fields });
  const streamed = [
    eventFrame("messageStart", { role: "assistant" }),
    delta(0, { reasoningContent: { text: "Hm." } }),
    delta(0, { reasoningContent: { signature: "c2ln" } }),
    eventFrame("contentBlockStop", { contentBlockIndex: 0 }),
    delta(1, { text: "I " }),
    delta(1, { text: "look." }),
    eventFrame("contentBlockStop", { contentBlockIndex: 1 }),
    eventFrame("contentBlockStart", { contentBlockIndex: 2, start: { toolUse: { toolUseId: "t1", name: "look" } } }),
    delta(2, { toolUse: { input: '{"at":' } }),
    delta(2, { toolUse: { input: '"x"}' } }),
    eventFrame("contentBlockStop", { contentBlockIndex: 2 }),
    eventFrame("contentBlockStart", { contentBlockIndex: 3, start: { toolUse: { toolUseId: "t2", name: "wait" } } }),
    eventFrame("contentBlockStop", { contentBlockIndex: 3 }),
    eventFrame("eventOfTomorrow", {}),
    eventFrame("messageStop", { stopReason: "tool_use" }),
    eventFrame("metadata", { usage, metrics: { latencyMs: 5 } }),
  ];

  test.each([
    ["one by one", streamed],
    ["together", [Buffer.concat(streamed)]],
  ])("a stream is one of chat, whose events arrive %s", async (_, frames) => {
    const { mock, ask } = await startConverse();
    mock.respond(mockFrames(frames));
    const chunks = (await ask("stream")) as { choices: { delta: object; finish_reason: unknown }[]; usage?: object }[];
    const begins = (index: number, id: string, name: string) => ({
      tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }],
    });
    const args = (index: number, text: string) => ({ tool_calls: [{ index, function: { arguments: text } }] });
    expect(chunks.flatMap(({ choices }) => choices.map((choice) => choice.delta))).toEqual([
      { reasoning_content: "Hm." },
      { content: "I " },
      { content: "look." },
      begins(0, "t1", "look"),
      args(0, '{"at":'),
      args(0, '"x"}'),
      begins(1, "t2", "wait"),
      args(1, "{}"),
      {},
    ]);
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe("tool_calls");
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: chatUsage });
  });

  test.each([
    ["end_turn", "stop"],
    ["stop_sequence", "stop"],
    ["max_tokens", "length"],
    ["model_context_window_exceeded", "length"],
    ["guardrail_intervened", "content_filter"],
    ["content_filtered", "content_filter"],
    ["reason_of_tomorrow", "stop"],
  ])("that ends with %s ends with %s", async (stopReason, finish_reason) => {
    const { mock, ask } = await startConverse();
    const text = { output: { message: { content: [{ text: "Hi" }] } }, stopReason, usage };
    mock.respond({ body: text }, mockFrames([eventFrame("messageStop", { stopReason })]));
    expect(await ask("answer")).toMatchObject({ choices: [{ finish_reason }] });
    expect(await ask("stream")).toMatchObject([{ choices: [{ finish_reason }] }]);
  });

  test.each([
    ["no message", { stopReason: "end_turn" }],
    ["content that is no list", { output: { message: { content: "Hi" } } }],
    ["blocks that are no objects", { output: { message: { content: ["Hi"] } } }],
    ["a call that the model wrote wrongly", { ...answered, stopReason: "malformed_tool_use" }],
  ])("with %s is a failure", async (_, body) => {
    const { mock, ask } = await startConverse();
    mock.respond({ body });
    expect(await errorOf(ask("answer"))).toMatchObject({ kind: "unavailable" });
  });

  test("a stream whose usage is cut in a frame is a failure", async () => {
    const { mock, readFailing } = await startConverse();
    mock.respond(mockFrames([Buffer.concat(streamed).subarray(0, -5)]));
    const { events, failure } = await readFailing();
    expect(failure).toMatchObject({ kind: "unavailable", message: /incomplete frame/ });
    expect(events).toHaveLength(9);
  });

  test("a stream that ends before its stop, or with a malformed call, is a failure after what came", async () => {
    const { mock, readFailing } = await startConverse();
    const malformed = eventFrame("messageStop", { stopReason: "malformed_model_output" });
    mock.respond(mockFrames(streamed.slice(0, 6)), mockFrames([Buffer.concat([...streamed.slice(0, 6), malformed])]));
    for (let time = 0; time < 2; time++) {
      const { events, failure } = await readFailing();
      expect(failure).toMatchObject({ kind: "unavailable" });
      expect(events).toHaveLength(3);
    }
  });
});
