import { expect, onTestFinished, test } from "vitest";
import type { JsonObject } from "#json";
import { createOpenai } from "../../workers/providers/openai/index.ts";
import type { TextCall } from "../../workers/providers/provider.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { mockError, mockText, startMockOpenai } from "../support/mock-openai.ts";
import { errorOf, log, oneByOne } from "../support/upstreams-setup.ts";

const question = { model: "gpt-5.2", input: "Hi", max_output_tokens: 50 };

async function start({ storesAnswers = false, concurrency = 2 } = {}) {
  const mock = await startMockOpenai();
  const clock = createManualClock();
  const formats = ["chat", "responses"] as const;
  const target = { baseUrl: mock.url, apiKey: "sk-operator", concurrency, storesAnswers, formats };
  const provider = createOpenai(target, { clock });
  onTestFinished(async () => {
    await provider.close();
    await mock.close();
  });
  const call = (body: JsonObject = question, signal = new AbortController().signal): TextCall => ({
    format: "responses",
    model: "m",
    headers: {},
    body,
    signal,
    log,
  });
  const stream = (asked = call()) => oneByOne(provider.stream(asked));
  return { mock, clock, provider, call, stream };
}

test("a request is sent unchanged, with unknown fields, and without chat's stream options", async () => {
  const { mock, provider, call, stream } = await start();
  const body = { ...question, reasoning: { effort: "low" }, include: ["reasoning.encrypted_content"], vendor: [null] };
  await provider.answer(call(body));
  await Array.fromAsync(stream(call(body)));
  expect(mock.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(Array(2).fill("POST /v1/responses"));
  expect(mock.requests.map(({ body }) => body)).toEqual([body, { ...body, stream: true }]);
  expect(mock.requests[0]?.headers.authorization).toBe("Bearer sk-operator");
});

test("store is false whatever was requested", async () => {
  const { mock, provider, call, stream } = await start();
  await provider.answer(call({ ...question, store: true }));
  await Array.fromAsync(stream(call({ ...question, store: null })));
  expect(mock.requests.map(({ body }) => body["store"])).toEqual([false, false]);
});

test("an upstream that stores answers gets store: false with each request", async () => {
  const { mock, provider, call, stream } = await start({ storesAnswers: true });
  await provider.answer(call());
  await Array.fromAsync(stream());
  expect(mock.requests.map(({ body }) => body["store"])).toEqual([false, false]);
});

test("an answer is passed unchanged: reasoning with its state, calls, and unknown items", async () => {
  const { mock, provider, call } = await start();
  const output = [
    { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "ZW5j" },
    { type: "function_call", id: "fc_1", call_id: "call_1", name: "look", arguments: "{}", status: "completed" },
    { type: "item_of_tomorrow", id: "it_1", value: 1 },
  ];
  mock.respond({ output });
  expect(await provider.answer(call())).toMatchObject({ object: "response", status: "completed", output, error: null });
});

test("an incomplete answer is an answer", async () => {
  const { mock, provider, call, stream } = await start();
  mock.always({ incomplete: "max_output_tokens" });
  const incomplete = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } };
  expect(await provider.answer(call())).toMatchObject(incomplete);
  const events = await Array.fromAsync(stream());
  expect(events.at(-1)).toMatchObject({ type: "response.incomplete", response: incomplete });
});

test("the events are passed unchanged, in their order, with their numbers", async () => {
  const { mock, stream } = await start();
  const output = [
    { type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }], encrypted_content: "ZW5j" },
    { type: "function_call", call_id: "call_1", name: "look", arguments: "{}", status: "completed" },
    { type: "message", role: "assistant", status: "completed", content: [{ type: "refusal", refusal: "No." }] },
    { type: "item_of_tomorrow" },
  ];
  mock.respond({ output });
  const events = await Array.fromAsync(stream());
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
  expect(events.map(({ type }) => String(type).replace("response.", ""))).toEqual([
    "created",
    "in_progress",
    "output_item.added",
    "reasoning_summary_part.added",
    "reasoning_summary_text.delta",
    "reasoning_summary_text.done",
    "reasoning_summary_part.done",
    "output_item.done",
    "output_item.added",
    "function_call_arguments.delta",
    "function_call_arguments.done",
    "output_item.done",
    "output_item.added",
    "content_part.added",
    "refusal.delta",
    "refusal.done",
    "content_part.done",
    "output_item.done",
    "output_item.added",
    "output_item.done",
    "completed",
  ]);
  expect(events.at(-1)?.response).toMatchObject({ status: "completed", output });
});

test("a stream of text has its deltas and the whole text", async () => {
  const { stream } = await start();
  const events = await Array.fromAsync(stream());
  const pieces = events.filter(({ type }) => type === "response.output_text.delta");
  expect(pieces.map(({ delta }) => delta).join("")).toBe(mockText);
  expect(pieces.length).toBeGreaterThan(3);
  expect(events.find(({ type }) => type === "response.output_text.done")?.text).toBe(mockText);
});

const failed = [
  [{ code: "server_error", message: "It broke." }, "unavailable", "status 500: It broke."],
  [{ code: "rate_limit_exceeded", message: "Slowly." }, "busy", "status 429: Slowly."],
  [{ code: "invalid_prompt", message: "Not that." }, "refused", "Not that."],
  [{ code: "image_content_policy_violation", message: "Not that." }, "refused", "Not that."],
  [{ code: "failed_to_download_image", message: "No such image." }, "refused", "No such image."],
  [{ code: "insufficient_quota", message: "Pay." }, "misconfigured", "status 500: Pay."],
  [{ code: "data_residency_mismatch", message: "Elsewhere." }, "misconfigured", "status 403: Elsewhere."],
  [{ code: "code_of_tomorrow", message: "Who knows." }, "unavailable", "status 500: Who knows."],
  [{}, "unavailable", "status 500: The model failed."],
] as const;

test.each(failed)(
  "a response that failed with %j is no answer though its status is 200: %s",
  async (error, kind, message) => {
    const { mock, provider, call } = await start();
    mock.respond({ failed: error });
    expect(await errorOf(provider.answer(call()))).toMatchObject({ name: "UpstreamFailure", kind, message });
  },
);

test.each(failed)("response.failed with %j ends the stream: %s", async (error, kind, message) => {
  const { mock, stream } = await start();
  mock.respond({ failed: error, text: "Hello" });
  const seen: JsonObject[] = [];
  const read = async () => {
    for await (const event of stream()) seen.push(event);
  };
  expect(await errorOf(read())).toMatchObject({ name: "UpstreamFailure", kind, message });
  expect(seen.map(({ type }) => type)).toContain("response.output_text.delta");
  expect(seen.map(({ type }) => type)).not.toContain("response.failed");
});

test("a canceled response is refused", async () => {
  const { mock, provider, call } = await start();
  mock.respond({ body: { object: "response", status: "cancelled", error: null, output: [] } });
  expect(await errorOf(provider.answer(call()))).toMatchObject({ kind: "unavailable" });
});

const created = { type: "response.created", sequence_number: 0, response: { id: "resp_1", status: "in_progress" } };
const completed = { type: "response.completed", sequence_number: 1, response: { id: "resp_1", status: "completed" } };

test.each([
  ["flat", { code: "server_error", message: "It broke.", param: null }, "unavailable", undefined],
  ["nested", { error: { type: "server_error", code: null, message: "It broke." } }, "unavailable", undefined],
  ["flat", { code: "rate_limit_exceeded", message: "Slowly.", param: null }, "busy", undefined],
  ["nested", { error: { type: "invalid_request_error", message: "Bad.", param: "input" } }, "refused", "input"],
  ["flat", { code: null, message: "Nobody knows.", param: null }, "unavailable", undefined],
])("an error event (%s) ends the stream: %j is %s", async (_, fields, kind, param) => {
  const { mock, stream } = await start();
  mock.respond({ events: [created, { type: "error", sequence_number: 1, ...fields }, completed] });
  const events = stream();
  expect((await events.next()).value).toEqual(created);
  const failure = await errorOf(events.next());
  expect(failure).toMatchObject({ name: "UpstreamFailure", kind });
  expect((failure as { param?: string }).param).toBe(param);
});

test.each([
  ["that ends before its last event", { events: [created] }],
  ["with [DONE] in the place of its last event", { events: [created, "data: [DONE]\n\n"] }],
  ["that is cut", { cutAfter: 4 }],
  ["of nothing", { events: [] }],
])("a stream %s fails", async (_, answer) => {
  const { mock, stream } = await start();
  mock.respond(answer);
  expect(await errorOf(Array.fromAsync(stream()))).toMatchObject({ name: "UpstreamFailure", kind: "unavailable" });
});

test("the last event is the end, though the upstream keeps the connection open; a second later it is closed", async () => {
  const { mock, stream, clock } = await start();
  mock.respond({ events: [created, completed], beforeEnd: new Promise(() => {}) });
  expect(await Array.fromAsync(stream())).toEqual([created, completed]);
  const request = await mock.request(0);
  expect(request.aborted).toBe(false);
  clock.advance(1_000);
  await request.closed;
  expect(request.aborted).toBe(true);
});

test.each([
  ["no output", { object: "response", status: "completed" }],
  ["output that is no list", { object: "response", status: "completed", output: {} }],
  ["output that is no objects", { object: "response", status: "completed", output: [1] }],
  ["choices", { object: "chat.completion", choices: [{ message: {} }] }],
])("an answer with %s is none", async (_, body) => {
  const { mock, provider, call } = await start();
  mock.respond({ body });
  expect(await errorOf(provider.answer(call()))).toMatchObject({ kind: "unavailable" });
});

test.each([
  [
    mockError(400, "Unknown parameter.", { param: "input[0]" }),
    { kind: "refused", message: "Unknown parameter.", param: "input[0]" },
  ],
  [mockError(429, "Slowly.", { headers: { "retry-after": "7" } }), { kind: "busy", retryAfterMs: 7_000 }],
  [{ body: { error: { message: "Slowly.", code: "rate_limit_exceeded" } } }, { kind: "busy" }],
  [mockError(404, "No such model."), { kind: "misconfigured" }],
])("an error in the place of an answer or of a stream is one: %j", async (answer, expected) => {
  const { mock, provider, call, stream } = await start();
  mock.respond(answer, answer);
  expect(await errorOf(provider.answer(call()))).toMatchObject(expected);
  expect(await errorOf(Array.fromAsync(stream()))).toMatchObject(expected);
});

test("a format that no server of this interface speaks is not sent", async () => {
  const { mock, provider, call, stream } = await start();
  const foreign: TextCall = { ...call(), format: "gemini" };
  expect(await errorOf(provider.answer(foreign))).toMatchObject({ kind: "misconfigured" });
  expect(await errorOf(Array.fromAsync(stream(foreign)))).toMatchObject({ kind: "misconfigured" });
  expect(mock.requests).toHaveLength(0);
});

test("one connection serves answer after answer and stream after stream", async () => {
  const { mock, provider, call, stream } = await start({ concurrency: 1 });
  for (let i = 0; i < 5; i++) {
    await provider.answer(call());
    await Array.fromAsync(stream());
    mock.respond({ failed: {}, text: "No" });
    await errorOf(Array.fromAsync(stream()));
  }
  expect(mock.connections()).toBe(1);
});
