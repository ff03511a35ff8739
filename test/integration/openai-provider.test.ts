import { gzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import type { JsonObject } from "#json";
import { createOpenai } from "../../workers/providers/openai/index.ts";
import type { TextCall } from "../../workers/providers/provider.ts";
import { leave, letGo } from "../support/disconnecting.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { mockChunk, mockError, mockText, mockUsage, startMockOpenai } from "../support/mock-openai.ts";
import { errorOf, gate, log, oneByOne } from "../support/upstreams-setup.ts";

async function start({ concurrency = 2, storesAnswers = false } = {}) {
  const mock = await startMockOpenai();
  const clock = createManualClock();
  const target = { baseUrl: mock.url, apiKey: "sk-operator", concurrency, storesAnswers, formats: ["chat" as const] };
  const provider = createOpenai(target, { clock });
  onTestFinished(async () => {
    await provider.close();
    await mock.close();
  });
  const call = (body: JsonObject = {}, signal = new AbortController().signal): TextCall => ({
    format: "chat",
    model: "m",
    headers: {},
    body: { model: "m", messages: [{ role: "user", content: "Hi" }], ...body },
    signal,
    log,
  });
  const chunkwise = { ...provider, stream: (asked: TextCall) => oneByOne(provider.stream(asked)) };
  return { mock, clock, provider: chunkwise, call };
}

test("a request is sent unchanged, with unknown fields, under the operator's key", async () => {
  const { mock, provider, call } = await start();
  await provider.answer(call({ temperature: 0.5, vendor_field: { deep: [1, null] }, n: 2 }));
  const [request] = mock.requests;
  expect(request?.body).toEqual({
    model: "m",
    messages: [{ role: "user", content: "Hi" }],
    temperature: 0.5,
    vendor_field: { deep: [1, null] },
    n: 2,
  });
  expect(request?.headers).toMatchObject({
    authorization: "Bearer sk-operator",
    "content-type": "application/json",
    "accept-encoding": "identity",
  });
  expect(request?.headers).not.toHaveProperty("openai-organization");
});

test("an upstream without a key gets no Authorization", async () => {
  const { mock, call } = await start();
  const provider = createOpenai(
    { baseUrl: mock.url, apiKey: undefined, concurrency: 1, storesAnswers: false, formats: ["chat"] },
    { clock: createManualClock() },
  );
  onTestFinished(() => provider.close());
  await errorOf(provider.answer(call()));
  expect(mock.requests[0]?.headers).not.toHaveProperty("authorization");
});

test("a stream always requests its usage, with the caller's stream options; a JSON answer does not", async () => {
  const { mock, provider, call } = await start();
  const options = { include_usage: false, include_obfuscation: false };
  const chunks = await Array.fromAsync(provider.stream(call({ stream_options: options })));
  expect(mock.requests[0]?.body).toMatchObject({
    stream: true,
    stream_options: { include_usage: true, include_obfuscation: false },
  });
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage: mockUsage() });
  await provider.answer(call({ stream: true, stream_options: options }));
  expect(mock.requests[1]?.body).not.toHaveProperty("stream");
  expect(mock.requests[1]?.body).not.toHaveProperty("stream_options");
});

test("a request that sets store gets false, others do not get the field", async () => {
  const { mock, provider, call } = await start();
  await provider.answer(call({ store: true }));
  await Array.fromAsync(provider.stream(call({ store: null })));
  await provider.answer(call());
  expect(mock.requests.map(({ body }) => body["store"])).toEqual([false, false, undefined]);
});

test("an upstream that stores answers gets store: false with each request", async () => {
  const { mock, provider, call } = await start({ storesAnswers: true });
  await provider.answer(call());
  await Array.fromAsync(provider.stream(call({ store: true })));
  expect(mock.requests.map(({ body }) => body["store"])).toEqual([false, false]);
});

test("embeddings are passed unchanged in both directions", async () => {
  const { mock, provider, call } = await start();
  const body = { input: ["one", "two words"], dimensions: 3, encoding_format: "base64" };
  expect(await provider.embed(call(body))).toMatchObject({
    data: [{ index: 0 }, { index: 1, embedding: Buffer.from(new Float32Array([0, 1, 0]).buffer).toString("base64") }],
    usage: { prompt_tokens: 3 },
  });
  expect(mock.requests[0]).toMatchObject({ path: "/v1/embeddings", body });
});

test.each(["gzip", "br"] as const)(
  "an answer compressed without being asked (%s) is read: JSON, stream and error",
  async (encoding) => {
    const { mock, provider, call } = await start();
    mock.respond({ encoding }, { encoding }, { ...mockError(400, "no such field"), encoding });
    expect(await provider.answer(call())).toMatchObject({ choices: [{ message: { content: mockText } }] });
    expect(await Array.fromAsync(provider.stream(call()))).toHaveLength(11);
    expect(await errorOf(provider.answer(call()))).toMatchObject({ kind: "refused", message: "no such field" });
  },
);

const tooLarge = Buffer.concat([Buffer.from('{"choices": ['), Buffer.alloc(65 * 1024 * 1024, " "), Buffer.from("]}")]);

test.each([
  ["an unknown encoding", { headers: { "content-encoding": "zip" } }],
  ["broken gzip", { headers: { "content-encoding": "gzip" } }],
  ["an answer over 64 MB", { body: tooLarge }],
  ["a small answer that unpacks to over 64 MB", { body: tooLarge, encoding: "gzip" as const }],
  ["no content", { status: 204, body: "" }],
  ["a list", { body: "[]" }],
  ["choices that are no list", { body: { choices: {} } }],
  ["choices that are no objects", { body: { choices: [null] } }],
])("%s is refused as an answer", async (_, answer) => {
  const { mock, provider, call } = await start();
  mock.respond(answer);
  expect(await errorOf(provider.answer(call()))).toMatchObject({ name: "UpstreamFailure", kind: "unavailable" });
});

test.each([
  ["HTML of a proxy", 502, "<html><h1>Bad Gateway</h1></html>", "unavailable"],
  ["an empty body", 400, "", "refused"],
  ["half of a JSON body", 500, '{"error": {"mess', "unavailable"],
  ["a bare text as error", 422, { error: "messages: too many" }, "refused"],
  ["an object that is the error", 400, { message: "messages: too many", param: null }, "refused"],
  ["Google's list around it", 400, [{ error: { code: 400, message: "messages: too many" } }], "refused"],
  [
    "Google's word for a bad key",
    400,
    [{ error: { code: 400, message: "API key not valid. Please" } }],
    "misconfigured",
  ],
  ["a content policy", 400, { error: { message: "flagged", code: "content_policy_violation" } }, "refused"],
  ["a payment that is due", 402, { error: { message: "add credits" } }, "misconfigured"],
  ["a redirect", 302, "", "misconfigured"],
])("%s (status %i) has its kind", async (_, status, body, kind) => {
  const { mock, provider, call } = await start();
  mock.respond({ status, body, headers: { location: `${mock.url}/elsewhere` } });
  const failure = await errorOf(provider.answer(call()));
  expect(failure).toMatchObject({ kind, status });
  expect((failure as Error).message).not.toContain("<");
  expect(mock.requests).toHaveLength(1);
});

test.each([
  ["server_error", { message: "oops", type: "server_error", code: null }, "unavailable"],
  ["a status as code", { message: "busy", code: 429 }, "busy"],
  [
    "a policy",
    { message: "flagged", type: "invalid_request_error", param: "messages", code: "content_filter" },
    "refused",
  ],
])("an error inside a stream (%s) ends it", async (_, error, kind) => {
  const { mock, provider, call } = await start();
  mock.respond({ events: [mockChunk({ content: "a" }), { error }, mockChunk({ content: "b" })] });
  const seen: unknown[] = [];
  const read = async () => {
    for await (const chunk of provider.stream(call())) seen.push(chunk);
  };
  expect(await errorOf(read())).toMatchObject({ kind });
  expect(seen).toHaveLength(1);
});

test("a stream may end without [DONE] once it has finished, but not before", async () => {
  const { mock, provider, call } = await start();
  const begun = mockChunk({ content: "a" });
  mock.respond(
    { events: [begun, mockChunk({}, "stop")], done: false },
    { events: [begun], done: false },
    { cutAfter: 4 },
  );
  expect(await Array.fromAsync(provider.stream(call()))).toHaveLength(2);
  for (let i = 0; i < 2; i++)
    expect(await errorOf(Array.fromAsync(provider.stream(call())))).toMatchObject({ kind: "unavailable" });
});

test.each([
  ["no JSON", "data: hello\n\n"],
  ["no object", "data: 42\n\n"],
  ["choices that are no list", 'data: {"choices": 1}\n\n'],
])("a chunk that is %s breaks the stream", async (_, event) => {
  const { mock, provider, call } = await start();
  mock.respond({ events: [event] });
  expect(await errorOf(Array.fromAsync(provider.stream(call())))).toMatchObject({ kind: "unavailable" });
});

test.each([
  ["that is whole", "}\n\n"],
  ["that has no end yet", ""],
])("an event over 8 MB %s breaks the stream", async (_, end) => {
  const { mock, provider, call } = await start();
  mock.respond({
    events: [mockChunk({ content: "a" }), `data: {"choices": []${" ".repeat(9 * 1024 * 1024)}${end}`],
    done: false,
    beforeEnd: new Promise(() => {}),
  });
  const chunks = provider.stream(call())[Symbol.asyncIterator]();
  await chunks.next();
  expect(await errorOf(chunks.next())).toMatchObject({
    kind: "unavailable",
    message: expect.stringMatching(/one event/i) as string,
  });
});

test("a stream is read no faster than its chunks are taken", async () => {
  const { mock, provider, call } = await start();
  const event = mockChunk({ content: "a".repeat(100_000) }, "stop");
  mock.respond({ events: Array.from({ length: 500 }, () => event) });
  const chunks = provider.stream(call())[Symbol.asyncIterator]();
  await chunks.next();
  const request = await mock.request(0);
  // Wait until the provider has been blocked for a hundred turns.
  for (let turns = 0, sent = 0; turns < 100; turns = request.eventsSent === sent ? turns + 1 : 0) {
    sent = request.eventsSent;
    await new Promise(setImmediate);
  }
  expect(request.eventsSent).toBeLessThan(250);
  let read = 1;
  while (!(await chunks.next()).done) read++;
  expect(read).toBe(500);
});

test("an answer instead of a stream is refused", async () => {
  const { mock, provider, call } = await start();
  mock.respond({ body: { error: { message: "overloaded", type: "rate_limit_error" } } }, { body: { choices: [] } });
  expect(await errorOf(Array.fromAsync(provider.stream(call())))).toMatchObject({ kind: "busy" });
  expect(await errorOf(Array.fromAsync(provider.stream(call())))).toMatchObject({ kind: "unavailable" });
});

test("one connection serves call after call, streams and errors too", async () => {
  const { mock, provider, call } = await start({ concurrency: 1 });
  for (let i = 0; i < 5; i++) {
    await provider.answer(call());
    await Array.fromAsync(provider.stream(call()));
    mock.respond(mockError(500, "no"));
    await errorOf(provider.answer(call()));
  }
  expect(mock.connections()).toBe(1);
});

test("[DONE] ends the stream while the connection stays open; a second later it is closed", async () => {
  const { mock, provider, call, clock } = await start();
  mock.respond({ beforeEnd: new Promise(() => {}) });
  await Array.fromAsync(provider.stream(call()));
  const request = await mock.request(0);
  expect(request.aborted).toBe(false);
  clock.advance(1_000);
  await request.closed;
  expect(request.aborted).toBe(true);
});

test("a caller who disconnects before the connection is released at once, and nothing is sent", async () => {
  const { mock, provider, call } = await start({ concurrency: 1 });
  const caller = new AbortController();
  const answer = errorOf(provider.answer(call({}, caller.signal)));
  const reason = new Error("disconnected");
  caller.abort(reason);
  expect(await answer).toBe(reason);
  await provider.answer(call());
  expect(mock.requests).toHaveLength(1);
});

test.each(["answer", "embed"] as const)(
  "a caller who leaves in the middle of a body closes the connection (%s)",
  async (method) => {
    const { mock, provider, call } = await start();
    mock.respond({ events: ['{"choices": [', "]}"], beforeEvent: { 1: new Promise(() => {}) } });
    expect(await leave(mock, (signal) => provider[method](call({}, signal)))).toEqual(letGo);
  },
);

test("chunks are delivered before the failure that follows them", async () => {
  const { mock, provider, call } = await start();
  const cutNow = gate();
  mock.respond({ beforeEvent: { 5: cutNow.promise }, cutAfter: 5 });
  const chunks = provider.stream(call())[Symbol.asyncIterator]();
  await chunks.next();
  cutNow.resolve();
  const request = await mock.request(0);
  await request.closed;
  let seen = 1;
  const read = async () => {
    while (!(await chunks.next()).done) seen++;
  };
  expect(await errorOf(read())).toMatchObject({ kind: "unavailable" });
  expect(seen).toBe(5);
});

test("a compressed stream that is cut fails", async () => {
  const { mock, provider, call } = await start();
  const bytes = gzipSync(`data: ${JSON.stringify(mockChunk({}, "stop"))}\n\n`);
  mock.respond({ events: [bytes.subarray(0, 40)], done: false, headers: { "content-encoding": "gzip" } });
  expect(await errorOf(Array.fromAsync(provider.stream(call())))).toMatchObject({ kind: "unavailable" });
});
