import type Anthropic from "@anthropic-ai/sdk";
import { describe, expect, test } from "vitest";
import {
  anthropicService,
  asking,
  clientOf,
  costOf,
  hostedModel,
  models,
  nativeModel,
  newCaller,
  ownName,
  textOf,
} from "../support/anthropic-client-setup.ts";
import { entryOf, localModel, nanoUsd } from "../support/service-setup.ts";

const running = anthropicService();
const hello = "Hello there";

/** The message that events make, put together as the documentation says. */
function messageOf(events: readonly Anthropic.MessageStreamEvent[]) {
  const [first] = events;
  if (first?.type !== "message_start") throw new Error("no message_start");
  const message = structuredClone(first.message) as unknown as { content: { text?: string }[] } & Record<
    string,
    unknown
  >;
  for (const event of events.slice(1))
    switch (event.type) {
      case "content_block_start":
        message.content[event.index] = { ...event.content_block } as { text?: string };
        break;
      case "content_block_delta": {
        const block = message.content[event.index] ?? {};
        if (event.delta.type === "text_delta") block.text = (block.text ?? "") + event.delta.text;
        break;
      }
      case "message_delta":
        Object.assign(message, event.delta, { usage: { ...(message["usage"] as object), ...event.usage } });
        break;
      case "message_start":
      case "content_block_stop":
      case "message_stop":
        break;
    }
  return message;
}

describe.each(models)("%s", (model) => {
  test("create: a message under the service's model id, with its usage, which is what is charged", async () => {
    const { client } = await newCaller(running);
    const message = await client.messages.create(asking(model));
    expect(message).toMatchObject({
      id: expect.stringMatching(/^msg_/),
      type: "message",
      role: "assistant",
      model,
      content: [{ type: "text" }],
      stop_reason: "end_turn",
      stop_sequence: null,
      stop_details: null,
    });
    expect(textOf(message)).toContain("ello there");
    const { input_tokens: input, output_tokens: output } = message.usage;
    expect([input > 0, output > 0]).toEqual([true, true]);
    await running.service.settled();
    const { request, amount_usd } = await entryOf(running.service, message._request_id);
    expect(request).toMatchObject({
      model,
      endpoint: "/v1/messages",
      status: "succeeded",
      usage: { input, output },
      estimated: false,
    });
    expect(nanoUsd(amount_usd)).toBe(-costOf(model, { input, output }));
  });

  test("stream: the documented events in their order; put together they are what JSON says", async () => {
    const { client } = await newCaller(running);
    const stream = await client.messages.create({ ...asking(model), stream: true });
    const events = await Array.fromAsync(stream);
    const types = events.map(({ type }) => type);
    expect(types.filter((type, at) => type !== types[at - 1])).toEqual([
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
    expect(types.filter((type) => type === "content_block_delta").length).toBeGreaterThan(1);
    const { id, usage, ...streamed } = messageOf(events);
    const { id: _, usage: counted, _request_id, ...whole } = await client.messages.create(asking(model));
    expect(streamed).toEqual(whole);
    expect(usage).toMatchObject({ output_tokens: counted.output_tokens, input_tokens: counted.input_tokens });
    expect(id).toMatch(/^msg_/);
  });

  test("the streaming helper: its events, the final message, the charge for its usage", async () => {
    const { client } = await newCaller(running);
    const seen = { text: "", snapshot: "", events: 0, blocks: 0 };
    const stream = client.messages
      .stream(asking(model))
      .on("text", (delta, snapshot) => Object.assign(seen, { text: seen.text + delta, snapshot }))
      .on("streamEvent", () => seen.events++)
      .on("contentBlock", () => seen.blocks++);
    const message = await stream.finalMessage();
    expect(message).toMatchObject({ model, stop_reason: "end_turn", content: [{ type: "text", text: seen.text }] });
    expect(seen.text).toContain("ello there");
    expect(seen.snapshot).toBe(seen.text);
    expect(seen.blocks).toBe(1);
    expect(seen.events).toBeGreaterThan(5);
    expect(await stream.finalText()).toBe(seen.text);
    expect(stream.request_id).toMatch(/^req_/);
    await running.service.settled();
    const { amount_usd, request } = await entryOf(running.service, stream.request_id);
    const { input_tokens: input, output_tokens: output } = message.usage;
    expect(request).toMatchObject({ usage: { input, output }, estimated: false });
    expect(nanoUsd(amount_usd)).toBe(-costOf(model, { input, output }));
  });

  test("raw: every event has its event line, as documented, and nothing comes after message_stop", async () => {
    const { customer } = await newCaller(running);
    const response = await customer.post("/v1/messages", { ...asking(model), stream: true });
    expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
    expect(response.headers.get("request-id")).toBe(response.headers.get("x-request-id"));
    const frames = (await response.text()).split("\n\n");
    expect(frames.pop()).toBe("");
    for (const frame of frames) {
      const [, event, data] = /^event: (\w+)\ndata: (\{.*\})$/.exec(frame) ?? [];
      expect(JSON.parse(data ?? "")).toMatchObject({ type: event });
    }
    expect(frames.at(-1)).toBe('event: message_stop\ndata: {"type":"message_stop"}');
  });

  test("several turns with a system prompt, as a string and as blocks", async () => {
    const { client } = await newCaller(running);
    const turns = [
      { role: "user" as const, content: "I am Ann." },
      { role: "assistant" as const, content: [{ type: "text" as const, text: "Hello Ann." }] },
      { role: "user" as const, content: [{ type: "text" as const, text: hello }] },
    ];
    const text = "Be brief.";
    const systems = [text, [{ type: "text" as const, text, cache_control: { type: "ephemeral" as const } }]];
    for (const system of systems) {
      const message = await client.messages.create({ ...asking(model), system, messages: turns });
      expect(textOf(message)).toContain("ello there");
    }
    const inChat = [
      { role: "system", content: text },
      { role: "user", content: "I am Ann." },
      { role: "assistant", content: "Hello Ann." },
      { role: "user", content: hello },
    ];
    expect(running.anthropic.requests.map(({ body }) => [body["system"], body["messages"]])).toEqual(
      model === nativeModel ? systems.map((system) => [system, turns]) : [],
    );
    expect(running.provider.requests.map(({ body }) => body["messages"])).toEqual(
      model === hostedModel ? [inChat, inChat] : [],
    );
  });

  test("the request id is on the message, on the stream and in the header", async () => {
    const { client } = await newCaller(running);
    const { data, response, request_id } = await client.messages.create(asking(model)).withResponse();
    expect(request_id).toMatch(/^req_/);
    expect(data).toMatchObject({ _request_id: request_id });
    expect(response.headers.get("request-id")).toBe(request_id);
    expect(response.headers.get("x-request-id")).toBe(request_id);
    const stream = client.messages.stream(asking(model));
    const { request_id: ofStream } = await stream.withResponse();
    await stream.done();
    expect(ofStream).toMatch(/^req_/);
    expect(ofStream).not.toBe(request_id);
  });
});

test.each([
  [ownName, nativeModel],
  [nativeModel, nativeModel],
  ["claude-hosted", hostedModel],
  [localModel, localModel],
])("a model is called by the provider's name or by ours: %s answers as %s", async (asked, named) => {
  const { client } = await newCaller(running);
  expect((await client.messages.create(asking(asked))).model).toBe(named);
  expect((await client.messages.stream(asking(asked)).finalMessage()).model).toBe(named);
});

test("the key goes as a bearer token, or as x-api-key; the provider gets the operator's", async () => {
  const { customer } = await newCaller(running);
  const sent: (string | null)[][] = [];
  const fetchSeen: typeof fetch = (url, init) => {
    const { headers } = new Request(url, init);
    sent.push([headers.get("authorization"), headers.get("x-api-key")]);
    return fetch(url, init);
  };
  const ways = [
    { apiKey: customer.key },
    { apiKey: null, authToken: customer.key },
    { apiKey: null, defaultHeaders: { authorization: null, "x-api-key": customer.key } },
  ];
  for (const way of ways) {
    const client = clientOf(running.service, customer, { ...way, fetch: fetchSeen });
    expect((await client.messages.create(asking(nativeModel))).model).toBe(nativeModel);
  }
  expect(sent).toEqual([
    [`Bearer ${customer.key}`, null],
    [`Bearer ${customer.key}`, null],
    [null, customer.key],
  ]);
  for (const { headers } of running.anthropic.requests) {
    expect(headers["x-api-key"]).toBe("sk-ant-operator");
    expect(headers).not.toHaveProperty("authorization");
  }
});
