import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  anthropicService,
  asking,
  clientOf,
  costOf,
  entriesOf,
  hostedModel,
  models,
  nativeModel,
  newCaller,
  ownName,
  textOf,
} from "../support/anthropic-client-setup.ts";
import { mockChunk, mockUsage } from "../support/mock-openai.ts";
import { chatAnswer } from "../support/responses-events.ts";
import { entryOf, expectUntouched, localModel, nanoUsd } from "../support/service-setup.ts";

const running = anthropicService();

const toolOf = (name: string) => ({
  name,
  description: `Gives the ${name}`,
  input_schema: { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] },
});
const tools = [toolOf("get_weather"), toolOf("get_time")];
const both = "get_weather and get_time, please";
const chatCall = (index: number, name: string, city: string) => ({
  id: `call_${index}`,
  type: "function",
  function: { name, arguments: JSON.stringify({ city }) },
});
const bothCalls = [chatCall(0, "get_weather", "Oslo"), chatCall(1, "get_time", "Rome")];

const callsOf = ({ content }: Pick<Anthropic.Message, "content">) =>
  content.flatMap((block) => (block.type === "tool_use" ? [block] : []));
const namesOf = (message: Pick<Anthropic.Message, "content">) => callsOf(message).map(({ name }) => name);

describe.each(models)("%s", (model) => {
  test("create: a message with our model id; the charge matches its usage", async () => {
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

  test("stream: the documented events in order", async () => {
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
    // Clients show the prompt's tokens from the first event on.
    const [first] = events;
    const input = first?.type === "message_start" ? first.message.usage.input_tokens : 0;
    expect(input).toBeGreaterThan(0);
  });

  test("the streaming helper assembles the same message as JSON; the charge matches its usage", async () => {
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
    const { id, usage, parsed_output: _, ...streamed } = message;
    const { id: __, usage: counted, _request_id, ...whole } = await client.messages.create(asking(model));
    expect(id).toMatch(/^msg_/);
    expect(streamed).toEqual(whole);
    expect([usage.input_tokens, usage.output_tokens]).toEqual([counted.input_tokens, counted.output_tokens]);
  });

  test("on the wire each event has its event line, and message_stop is the last", async () => {
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
});

describe.each(models)("tools of %s", (model) => {
  test("parallel calls are the same in JSON and in a stream", async () => {
    const { client } = await newCaller(running);
    const params = { ...asking(model, both), tools };
    running.provider.respond(chatAnswer({ tool_calls: bothCalls }, "tool_calls"));
    const message = await client.messages.create(params);
    expect(message.stop_reason).toBe("tool_use");
    expect(namesOf(message)).toEqual(["get_weather", "get_time"]);
    const calls = callsOf(message);
    for (const { input } of calls) expect(input).toEqual({ city: expect.any(String) as string });
    expect(new Set(calls.map(({ id }) => id)).size).toBe(2);

    running.provider.respond({
      events: [
        mockChunk({ role: "assistant", content: null }),
        ...bothCalls.flatMap(({ function: { arguments: args, name }, ...call }, index) => [
          mockChunk({ tool_calls: [{ index, ...call, function: { name, arguments: "" } }] }),
          mockChunk({ tool_calls: [{ index, function: { arguments: args.slice(0, 4) } }] }),
          mockChunk({ tool_calls: [{ index, function: { arguments: args.slice(4) } }] }),
        ]),
        mockChunk({}, "tool_calls"),
        mockChunk(undefined, null, { usage: mockUsage() }),
      ],
    });
    const pieces: string[] = [];
    const snapshots: unknown[] = [];
    const stream = client.messages.stream(params).on("inputJson", (piece, snapshot) => {
      pieces.push(piece);
      snapshots.push(snapshot);
    });
    const streamed = await stream.finalMessage();
    expect(streamed.stop_reason).toBe("tool_use");
    const bare = (message: Pick<Anthropic.Message, "content">) =>
      callsOf(message).map(({ name, input }) => ({ name, input }));
    expect(bare(streamed)).toEqual(bare(message));
    expect(pieces.join("")).toBe(calls.map(({ input }) => JSON.stringify(input)).join(""));
    expect(snapshots.at(-1)).toEqual(calls.at(-1)?.input);
  });

  test("the tool runner runs functions until an answer has no calls", async () => {
    const { client, customer } = await newCaller(running);
    const asked: string[] = [];
    const weather = betaZodTool({
      name: "get_weather",
      description: "Gives the weather",
      inputSchema: z.object({ city: z.string() }),
      run: ({ city }) => {
        asked.push(city);
        return `rain in ${city}`;
      },
    });
    for (const stream of [false, true]) {
      const call = chatCall(0, "get_weather", "Oslo");
      running.provider.respond(
        stream
          ? { events: [mockChunk({ tool_calls: [{ index: 0, ...call }] }), mockChunk({}, "tool_calls")] }
          : chatAnswer({ tool_calls: [call] }, "tool_calls"),
        { text: "It rains: rain in Oslo" },
      );
      const runner = client.beta.messages.toolRunner({
        ...asking(model, 'get_weather in "Oslo"'),
        tools: [weather],
        stream,
      });
      const last = (await runner.runUntilDone()) as unknown as Anthropic.Message;
      expect(last.stop_reason).toBe("end_turn");
      expect(textOf(last)).toContain(`rain in ${asked.at(-1)}`);
    }
    expect(asked).toHaveLength(2);
    // The runner requests a thread first and continues without one.
    for (const { body } of [...running.anthropic.requests, ...running.provider.requests])
      expect(body).not.toHaveProperty("thread");
    expect(await entriesOf(running.service, customer)).toMatchObject(
      Array.from({ length: 4 }, () => ({ request: { endpoint: "/v1/messages", status: "succeeded" } })),
    );
  });
});

describe.each(models)("structured output of %s", (model) => {
  const answer = z.object({ city: z.string(), days: z.array(z.number()) });
  const output_config = { format: zodOutputFormat(answer) };

  test("parse returns an object of the schema, in JSON and in a stream", async () => {
    const { client } = await newCaller(running);
    const text = '{"city":"Oslo","days":[1,2]}';
    running.provider.respond({ text }, { text });
    const whole = await client.messages.parse({ ...asking(model), output_config });
    expect(answer.safeParse(whole.parsed_output).success).toBe(true);
    const streamed = await client.messages.stream({ ...asking(model), output_config }).finalMessage();
    expect(streamed.parsed_output).toEqual(whole.parsed_output);
  });
});

const names = [ownName, nativeModel, "claude-hosted", hostedModel, localModel];
test.each(names)("a model is known by the provider's name and by ours: %s answers under that name", async (asked) => {
  const { client } = await newCaller(running);
  expect((await client.messages.create(asking(asked))).model).toBe(asked);
  expect((await client.messages.stream(asking(asked)).finalMessage()).model).toBe(asked);
});

test("the key is a bearer token or x-api-key; the provider receives the operator's key", async () => {
  const { customer } = await newCaller(running);
  const sent: (string | null)[][] = [];
  const fetchSeen: typeof fetch = (url, init) => {
    const { headers } = new Request(url, init);
    sent.push([headers.get("authorization"), headers.get("x-api-key")]);
    return fetch(url, init);
  };
  const options = [
    { apiKey: customer.key },
    { apiKey: null, authToken: customer.key },
    { apiKey: null, defaultHeaders: { authorization: null, "x-api-key": customer.key } },
  ];
  for (const option of options) {
    const client = clientOf(running.service, customer, { ...option, fetch: fetchSeen });
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

describe("how an answer ends", () => {
  const ask = (model: string, more: object) => ({ ...asking(model, "one two END three"), ...more });

  test.each([localModel, nativeModel])("%s: at max_tokens", async (model) => {
    const { client } = await newCaller(running);
    for (const message of [
      await client.messages.create(ask(model, { max_tokens: 2 })),
      await client.messages.stream(ask(model, { max_tokens: 2 })).finalMessage(),
    ])
      expect(message).toMatchObject({ stop_reason: "max_tokens", stop_sequence: null, usage: { output_tokens: 2 } });
  });

  test("native: at a stop sequence, which is named", async () => {
    const { client } = await newCaller(running);
    const params = ask(nativeModel, { stop_sequences: ["NEVER", "END"] });
    for (const message of [await client.messages.create(params), await client.messages.stream(params).finalMessage()]) {
      expect(message).toMatchObject({ stop_reason: "stop_sequence", stop_sequence: "END" });
      expect(textOf(message).trimEnd()).toBe("You said: one two");
    }
  });

  test("local: before a stop sequence", async () => {
    const { client } = await newCaller(running);
    const message = await client.messages.create(ask(localModel, { stop_sequences: ["END"] }));
    expect(textOf(message)).toMatch(/one two $/);
  });
});

describe("the local model", () => {
  const choices: readonly (readonly [string, Anthropic.ToolChoice, prompt: string, names: readonly string[]])[] = [
    ["auto", { type: "auto" }, both, ["get_weather", "get_time"]],
    ["auto, no tool mentioned", { type: "auto" }, "hi", []],
    ["any", { type: "any" }, "hi", ["get_weather"]],
    ["tool", { type: "tool", name: "get_time" }, "hi", ["get_time"]],
    ["none", { type: "none" }, both, []],
    ["one at a time", { type: "auto", disable_parallel_tool_use: true }, both, ["get_weather"]],
  ];

  test.each(choices)("tool_choice %s", async (_, tool_choice, prompt, names) => {
    const { client } = await newCaller(running);
    const message = await client.messages.create({ ...asking(localModel, prompt), tools, tool_choice });
    expect(namesOf(message)).toEqual(names);
    expect(message.stop_reason).toBe(names.length > 0 ? "tool_use" : "end_turn");
  });

  test("a tool_choice that names no tool is refused", async () => {
    const { client } = await newCaller(running);
    const tool_choice = { type: "tool" as const, name: "nothing" };
    const calling = client.messages.create({ ...asking(localModel), tools, tool_choice });
    await expect(calling).rejects.toBeInstanceOf(Anthropic.BadRequestError);
    await expect(calling).rejects.toThrow(/nothing/);
  });

  test("results of tools are read", async () => {
    const { client } = await newCaller(running);
    const call = { type: "tool_use" as const, id: "toolu_1", name: "get_weather", input: {} };
    const messages: Anthropic.MessageParam[] = [
      { role: "user", content: "weather and time?" },
      { role: "assistant", content: [call] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "rain" }] },
    ];
    const message = await client.messages.create({ ...asking(localModel), tools, messages });
    expect(textOf(message)).toContain("get_weather returned: rain");
  });

  test("an image is described and counted", async () => {
    const { client } = await newCaller(running);
    const data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const image = {
      type: "image" as const,
      source: { type: "base64" as const, media_type: "image/png" as const, data },
    };
    const messages = [{ role: "user" as const, content: [image, { type: "text" as const, text: "What is it?" }] }];
    const message = await client.messages.create({ ...asking(localModel), messages });
    expect(textOf(message)).toMatch(/I see .*PNG/i);
    expect(message.usage.input_tokens).toBeGreaterThan(200);
  });
});

test("a converted request has the host's model and the cap; ignored parameters are named in a header", async () => {
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

test("another model's thinking comes back to it signed, and does not reach Claude", async () => {
  const { client } = await newCaller(running);
  const message = { role: "assistant", content: "Then.", reasoning_content: "First." };
  running.provider.respond({ body: { choices: [{ index: 0, message, finish_reason: "stop" }] } });
  const { content } = await client.messages.create(asking(hostedModel));
  expect(content).toEqual([
    { type: "thinking", thinking: "First.", signature: expect.stringMatching(/./) },
    { type: "text", text: "Then." },
  ]);
  const messages = [
    { role: "user" as const, content: "Hello there" },
    { role: "assistant" as const, content },
    { role: "user" as const, content: "Go on" },
  ];
  await client.messages.create({ ...asking(nativeModel), messages });
  expect(running.anthropic.requests[0]?.body["messages"]).toMatchObject([
    { role: "user" },
    { role: "assistant", content: [{ type: "text", text: "Then." }] },
    { role: "user" },
  ]);
});

describe("threads, which would be stored under the operator's key", () => {
  const first = { role: "user" as const, content: "I am Ann." };
  const second = { role: "user" as const, content: "Who am I?" };

  test("are refused with the code that the client expects", async () => {
    const { client, customer } = await newCaller(running);
    const thread = client.beta.messages.thread({ model: nativeModel, max_tokens: 100 });
    const thrown: unknown = await thread.send(first).catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(Anthropic.BadRequestError);
    expect(thrown).toMatchObject({ errorCode: "thread_unsupported_request" });
    expect(running.anthropic.requests).toHaveLength(0);
    await expectUntouched(running.service, customer, "1.00");
  });

  test("the client continues without a thread if it may", async () => {
    const { client } = await newCaller(running);
    const thread = client.beta.messages.thread({
      model: nativeModel,
      max_tokens: 100,
      unsupportedRequestBehavior: "continue_unthreaded",
    });
    await thread.send(first);
    await thread.send(second);
    expect(running.anthropic.requests.map(({ body }) => [body["thread"], body["messages"]])).toMatchObject([
      [undefined, [first]],
      [undefined, [first, { role: "assistant" }, second]],
    ]);
  });
});
