import Anthropic from "@anthropic-ai/sdk";
import { describe, expect, test } from "vitest";
import {
  asking,
  clientOf,
  hostedModel,
  models,
  nativeModel,
  newCaller,
  textOf,
} from "../support/anthropic-client-setup.ts";
import { claudeName, formatsService } from "../support/formats-service.ts";
import { expectUntouched, localModel } from "../support/service-setup.ts";

const running = formatsService();

test.each(models)("%s: a stream has the documented events in order, each with its event line", async (model) => {
  const { customer } = await newCaller(running);
  const response = await customer.post("/v1/messages", { ...asking(model), stream: true });
  expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
  expect(response.headers.get("request-id")).toBe(response.headers.get("x-request-id"));
  const frames = (await response.text()).split("\n\n");
  expect(frames.pop()).toBe("");
  const types = frames.map((frame) => {
    const [, event, data] = /^event: (\w+)\ndata: (\{.*\})$/.exec(frame) ?? [];
    expect(JSON.parse(data ?? "")).toMatchObject({ type: event });
    return event;
  });
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
  expect(frames[0]).toMatch(/"input_tokens":[1-9]/);
  expect(frames.at(-1)).toBe('event: message_stop\ndata: {"type":"message_stop"}');
});

const names = [claudeName, nativeModel, hostedModel, localModel];
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

test("native: a stop sequence is named", async () => {
  const { client } = await newCaller(running);
  const params = { ...asking(nativeModel, "one two END three"), stop_sequences: ["NEVER", "END"] };
  for (const message of [await client.messages.create(params), await client.messages.stream(params).finalMessage()]) {
    expect(message).toMatchObject({ stop_reason: "stop_sequence", stop_sequence: "END" });
    expect(textOf(message).trimEnd()).toBe("You said: one two");
  }
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
    model: "relayed",
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
