import type Anthropic from "@anthropic-ai/sdk";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  anthropicService,
  asking,
  hostedModel,
  models,
  nativeModel,
  newCaller,
  ownName,
  textOf,
} from "../support/anthropic-client-setup.ts";
import { localModel } from "../support/service-setup.ts";

const running = anthropicService();
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const pdf = Buffer.from("%PDF-1.4\n%%EOF\n").toString("base64");

const picture = (source: Anthropic.ImageBlockParam["source"]) => ({ type: "image" as const, source });
const base64 = picture({ type: "base64", media_type: "image/png", data: png });
const byUrl = picture({ type: "url", url: "https://example.com/a.png" });
const document = {
  type: "document" as const,
  source: { type: "base64" as const, media_type: "application/pdf" as const, data: pdf },
  title: "A paper",
};
/** What the host was sent. */
const sentOn = () => running.provider.requests[0]?.body ?? {};
const saying = (model: string, ...content: Anthropic.ContentBlockParam[]) => ({
  ...asking(model),
  messages: [{ role: "user" as const, content: [...content, { type: "text" as const, text: "What is it?" }] }],
});

describe("pictures and documents", () => {
  test("its own provider gets them as they are", async () => {
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
    const params = saying(ownName, ...blocks);
    await client.messages.create(params);
    expect(running.anthropic.requests[0]?.body).toEqual(params);
  });

  test("its own provider gets a picture that is too large for the queue", async () => {
    const { client, customer } = await newCaller(running);
    const large = Buffer.concat([Buffer.from(png, "base64"), Buffer.alloc(300_000, "large")]).toString("base64");
    const params = saying(nativeModel, picture({ type: "base64", media_type: "image/png", data: large }));
    const message = await client.messages.stream(params).finalMessage();
    expect(message.stop_reason).toBe("end_turn");
    expect(running.anthropic.requests[0]?.body["messages"]).toEqual(params.messages);
    // Its bytes are no text: they are not what is held or charged for.
    await running.service.settled();
    expect(Number(await customer.available())).toBeGreaterThan(0.99);
  });

  test("hosted elsewhere: as the parts that chat has for them", async () => {
    const { client } = await newCaller(running);
    const text = {
      type: "document" as const,
      source: { type: "text" as const, media_type: "text/plain" as const, data: "Rain." },
    };
    await client.messages.create(saying(hostedModel, base64, byUrl, document, text));
    const [message] = sentOn()["messages"] as readonly { content: readonly object[] }[];
    expect(message?.content).toMatchObject([
      { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } },
      { type: "image_url", image_url: { url: "https://example.com/a.png" } },
      { type: "file", file: { file_data: `data:application/pdf;base64,${pdf}` } },
      { type: "text", text: "Rain." },
      { type: "text", text: "What is it?" },
    ]);
  });

  test("local: looks at a picture", async () => {
    const { client } = await newCaller(running);
    const message = await client.messages.create(saying(localModel, base64));
    expect(textOf(message)).toMatch(/I see .*PNG/i);
    expect(message.usage.input_tokens).toBeGreaterThan(200);
  });

  test("citations of its own provider come through, whole and streamed", async () => {
    const { client } = await newCaller(running);
    const citation = {
      type: "char_location",
      cited_text: "Rain.",
      document_index: 0,
      document_title: null,
      start_char_index: 0,
      end_char_index: 5,
      file_id: null,
    };
    running.anthropic.respond({ content: [{ type: "text", text: "It rains.", citations: [citation] }] });
    const message = await client.messages.create(asking(ownName));
    expect(message.content).toEqual([{ type: "text", text: "It rains.", citations: [citation] }]);
    const usage = { input_tokens: 5, output_tokens: 1 };
    running.anthropic.respond({
      events: [
        {
          type: "message_start",
          message: { id: "msg_1", type: "message", role: "assistant", model: ownName, content: [], usage },
        },
        { type: "content_block_start", index: 0, content_block: { type: "text", text: "", citations: [] } },
        { type: "content_block_delta", index: 0, delta: { type: "citations_delta", citation } },
        { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "It rains." } },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 3 } },
        { type: "message_stop" },
      ],
    });
    const cited: unknown[] = [];
    const stream = client.messages.stream(asking(ownName)).on("citation", (each) => cited.push(each));
    expect((await stream.finalMessage()).content).toEqual(message.content);
    expect(cited).toEqual([citation]);
  });
});

describe("thinking", () => {
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
  const params = { ...asking(ownName), max_tokens: 4_000, thinking, tools };

  test.each([
    ["whole", false],
    ["streamed", true],
  ])("%s: signed and redacted, it goes back to its provider unchanged in the next turn", async (_, isStream) => {
    const { client } = await newCaller(running);
    running.anthropic.respond({ content: [...state, call].map((block) => ({ ...block })) });
    const first = isStream ? await client.messages.stream(params).finalMessage() : await client.messages.create(params);
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

  test("the helper tells of it as it comes", async () => {
    const { client } = await newCaller(running);
    running.anthropic.respond({ content: state.map((block) => ({ ...block })) });
    const thought: string[] = [];
    const signed: string[] = [];
    await client.messages
      .stream(params)
      .on("thinking", (delta) => thought.push(delta))
      .on("signature", (signature) => signed.push(signature))
      .done();
    expect(thought.length).toBeGreaterThan(1);
    expect([thought.join(""), signed]).toEqual(["Let me see. It is easy.", ["c2lnbmF0dXJl"]]);
  });

  test("hosted elsewhere: what another provider thought is left out, how hard to think crosses", async () => {
    const { client } = await newCaller(running);
    const messages: Anthropic.MessageParam[] = [
      ...params.messages,
      { role: "assistant", content: [...state, { type: "text", text: "So." }] },
      { role: "user", content: "Well?" },
    ];
    await client.messages.create({ ...params, model: hostedModel, messages });
    const { body } = running.provider.requests[0] ?? {};
    expect(body?.["reasoning_effort"]).toBe("low");
    expect(JSON.stringify(body)).not.toMatch(/Let me see|c2lnbmF0dXJl|ZW5jcnlwdGVk/);
    expect(body?.["messages"]).toMatchObject([
      { role: "user" },
      { role: "assistant", content: "So." },
      { role: "user" },
    ]);
  });

  test("hosted elsewhere: the host's thinking comes as thinking", async () => {
    const { client } = await newCaller(running);
    const message = { role: "assistant", content: "Four.", reasoning_content: "Two and two." };
    running.provider.respond({ body: { choices: [{ index: 0, message, finish_reason: "stop" }] } });
    expect((await client.messages.create(asking(hostedModel))).content).toEqual([
      { type: "thinking", thinking: "Two and two.", signature: "" },
      { type: "text", text: "Four." },
    ]);
  });
});

describe.each(models)("structured output of %s", (model) => {
  const answer = z.object({ city: z.string(), days: z.array(z.number()) });
  const output_config = { format: zodOutputFormat(answer) };

  test("parse gives an object of the schema, whole and streamed", async () => {
    const { client } = await newCaller(running);
    const text = '{"city":"Oslo","days":[1,2]}';
    running.provider.respond({ text }, { text });
    const whole = await client.messages.parse({ ...asking(model), output_config });
    expect(answer.safeParse(whole.parsed_output).success).toBe(true);
    const streamed = await client.messages.stream({ ...asking(model), output_config }).finalMessage();
    expect(streamed.parsed_output).toEqual(whole.parsed_output);
  });

  test("the schema reaches whoever serves it", async () => {
    const { client } = await newCaller(running);
    await client.messages.create({ ...asking(model), output_config });
    const { schema } = output_config.format;
    const given = running.anthropic.requests.map(({ body }) => body["output_config"]);
    const crossed = running.provider.requests.map(({ body }) => body["response_format"]);
    const asNative = { format: { type: "json_schema", schema } };
    const asChat = { type: "json_schema", json_schema: { name: "answer", strict: true, schema } };
    expect([given, crossed]).toEqual([model === nativeModel ? [asNative] : [], model === hostedModel ? [asChat] : []]);
  });
});
