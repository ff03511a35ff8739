import type Anthropic from "@anthropic-ai/sdk";
import { describe, expect, test } from "vitest";
import {
  anthropicService,
  asking,
  hostedModel,
  nativeModel,
  newCaller,
  ownName,
  textOf,
} from "../support/anthropic-client-setup.ts";
import { localModel } from "../support/service-setup.ts";

const running = anthropicService();

/** What the service has no name for, and what it reads, beside what every request has. */
const everything = {
  ...asking(nativeModel),
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
  field_of_tomorrow: { deep: [1.5, null, { a: "ä" }], empty: {} },
};

describe("its own provider gets what the caller sent", () => {
  test.each([
    ["JSON", {}],
    ["stream", { stream: true }],
  ])("the body untouched but for the model: %s", async (_, more) => {
    const { customer } = await newCaller(running);
    const response = await customer.post("/v1/messages", { ...everything, ...more });
    expect(response.status).toBe(200);
    expect(response.headers.get("x-ignored-params")).toBeNull();
    await response.text();
    expect(running.anthropic.requests[0]).toMatchObject({ method: "POST", path: "/v1/messages" });
    expect(running.anthropic.requests[0]?.body).toEqual({ ...everything, ...more, model: ownName });
  });

  test("max_tokens comes down to what the model can", async () => {
    const { client } = await newCaller(running, "10");
    await client.messages.stream({ ...asking(nativeModel), max_tokens: 500_000 }).done();
    expect(running.anthropic.requests[0]?.body["max_tokens"]).toBe(128_000);
  });

  test("anthropic-version and anthropic-beta, and no other header of the caller's", async () => {
    const { client } = await newCaller(running);
    await client.messages.create(asking(nativeModel));
    await client.beta.messages.create({ ...asking(nativeModel), betas: ["one-2026-01-01", "two-2026-02-02"] });
    const headers = { "anthropic-version": "2023-06-01", "anthropic-beta": "three-2026-03-03", "x-secret": "mine" };
    await client.messages.stream(asking(nativeModel), { headers }).done();
    expect(
      running.anthropic.requests.map(({ headers }) => [headers["anthropic-version"], headers["anthropic-beta"]]),
    ).toEqual([
      // What this client sends by itself.
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

  test("a caller who names no version is served by the one that is documented", async () => {
    const { customer } = await newCaller(running);
    expect((await customer.post("/v1/messages", asking(nativeModel))).status).toBe(200);
    expect(running.anthropic.requests[0]?.headers["anthropic-version"]).toBe("2023-06-01");
  });
});

describe("the caller gets what its own provider says", () => {
  const content = [
    { type: "text", text: "Hi", citations: null },
    { type: "block_of_tomorrow", value: { deep: [1, null] } },
  ];
  const usage = { input_tokens: 5, output_tokens: 7, service_tier: "priority", usage_of_tomorrow: 1 };

  test("JSON: every field, the model is ours", async () => {
    const { client } = await newCaller(running);
    running.anthropic.respond({ content, usage, stopReason: "reason_of_tomorrow" });
    const message = await client.messages.create(asking(ownName));
    expect(message).toMatchObject({
      id: "msg_mock",
      model: nativeModel,
      content,
      stop_reason: "reason_of_tomorrow",
      usage,
    });
  });

  test("stream: every event, those of tomorrow too; our id is in the one that names the model", async () => {
    const { client } = await newCaller(running);
    const events = [
      {
        type: "message_start",
        message: {
          id: "msg_1",
          type: "message",
          role: "assistant",
          model: ownName,
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: 5, output_tokens: 1 },
          field_of_tomorrow: 1,
        },
      },
      { type: "content_block_start", index: 0, content_block: { type: "block_of_tomorrow", value: 1 } },
      { type: "content_block_delta", index: 0, delta: { type: "delta_of_tomorrow", value: 2 } },
      { type: "event_of_tomorrow", value: [null] },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 9 } },
      { type: "message_stop", field_of_tomorrow: true },
    ];
    running.anthropic.respond({ events });
    const stream = await client.messages.create({ ...asking(ownName), stream: true });
    const [first, ...rest] = await Array.fromAsync(stream);
    expect(first).toEqual({ ...events[0], message: { ...events[0]?.message, model: nativeModel } });
    expect(rest).toEqual(events.slice(1));
  });

  const refused = {
    type: "refusal",
    category: "bio",
    explanation: "I cannot help with that.",
  };
  test("a refusal is one, whole and streamed, and is charged as what it is", async () => {
    const { client } = await newCaller(running);
    const script = { content: [{ type: "text", text: "No." }], stopReason: "refusal" };
    running.anthropic.respond(script, script, {
      body: {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: ownName,
        content: [],
        stop_reason: "refusal",
        stop_details: refused,
        usage,
      },
    });
    expect(await client.messages.create(asking(ownName))).toMatchObject({ stop_reason: "refusal" });
    expect(await client.messages.stream(asking(ownName)).finalMessage()).toMatchObject({ stop_reason: "refusal" });
    expect(await client.messages.create(asking(ownName))).toMatchObject({ content: [], stop_details: refused });
  });
});

describe("how an answer ends", () => {
  const said = "one two END three";
  const ask = (model: string, more: object) => ({ ...asking(model, said), ...more });

  test.each([localModel, nativeModel])("%s: at max_tokens", async (model) => {
    const { client } = await newCaller(running);
    for (const message of [
      await client.messages.create(ask(model, { max_tokens: 2 })),
      await client.messages.stream(ask(model, { max_tokens: 2 })).finalMessage(),
    ])
      expect(message).toMatchObject({ stop_reason: "max_tokens", stop_sequence: null, usage: { output_tokens: 2 } });
  });

  test("its own provider: at a stop sequence, which is named", async () => {
    const { client } = await newCaller(running);
    const params = ask(nativeModel, { stop_sequences: ["NEVER", "END"] });
    for (const message of [await client.messages.create(params), await client.messages.stream(params).finalMessage()]) {
      expect(message).toMatchObject({ stop_reason: "stop_sequence", stop_sequence: "END" });
      expect(textOf(message).trimEnd()).toBe("You said: one two");
    }
  });

  test("local: is cut before a stop sequence", async () => {
    const { client } = await newCaller(running);
    const message = await client.messages.create(ask(localModel, { stop_sequences: ["END"] }));
    expect(textOf(message)).toMatch(/one two $/);
  });

  test.each([
    ["length", "max_tokens"],
    ["content_filter", "refusal"],
    ["stop", "end_turn"],
  ])("hosted elsewhere: %s is %s", async (finish_reason, stop_reason) => {
    const { client } = await newCaller(running);
    const choice = { index: 0, message: { role: "assistant", content: "Hi" }, finish_reason };
    running.provider.respond({ body: { choices: [choice], usage: { prompt_tokens: 1, completion_tokens: 1 } } });
    expect(await client.messages.create(asking(hostedModel))).toMatchObject({ stop_reason, stop_sequence: null });
  });
});

describe("hosted elsewhere", () => {
  test("what crosses is in chat's fields, the cap too; hints that do not are named", async () => {
    const { client } = await newCaller(running);
    const { response } = await client.messages
      .create({
        ...asking(hostedModel),
        system: "Be brief.",
        temperature: 0.5,
        top_p: 0.9,
        top_k: 40,
        stop_sequences: ["END"],
        metadata: { user_id: "user-1" },
        service_tier: "auto",
        cache_control: { type: "ephemeral" },
      } as Anthropic.MessageCreateParamsNonStreaming)
      .withResponse();
    expect(running.provider.requests[0]?.body).toMatchObject({
      model: "hosted-own-name",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hello there" },
      ],
      max_tokens: 1_000,
      temperature: 0.5,
      top_p: 0.9,
      stop: ["END"],
    });
    expect(response.headers.get("x-ignored-params")?.split(", ").toSorted()).toEqual([
      "cache_control",
      "metadata",
      "service_tier",
      "top_k",
    ]);
    expect(running.provider.requests[0]?.headers).not.toHaveProperty("anthropic-version");
  });
});
