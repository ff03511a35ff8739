import { expect, test } from "vitest";
import type { GenerationCall } from "../../workers/providers/provider.ts";
import { question, startAnthropic } from "../support/anthropic-provider-setup.ts";
import { leave, letGo } from "../support/disconnecting.ts";
import { errorOf, log, undisturbed } from "../support/upstreams-setup.ts";

const key = "sk-ant-operator";

test("a request is sent unchanged, with unknown fields, under the operator's key", async () => {
  const { mock, provider, call } = await startAnthropic();
  const body = {
    ...question,
    system: [{ type: "text", text: "Be kind.", cache_control: { type: "ephemeral", ttl: "1h" } }],
    messages: [{ role: "user", content: [{ type: "text", text: "Hi", citations: null }] }],
    temperature: 0,
    vendor_field: { deep: [1, null] },
  };
  await provider.answer(call(body));
  expect(mock.requests).toHaveLength(1);
  expect(mock.requests[0]).toMatchObject({ method: "POST", path: "/v1/messages" });
  expect(mock.requests[0]?.body).toEqual(body);
  expect(mock.requests[0]?.headers).toMatchObject({
    "x-api-key": key,
    "anthropic-version": "2023-06-01",
    "content-type": "application/json",
    "accept-encoding": "identity",
  });
  expect(mock.requests[0]?.headers).not.toHaveProperty("anthropic-beta");
  expect(mock.requests[0]?.headers).not.toHaveProperty("authorization");
});

test("an upstream without a key gets none", async () => {
  const { mock, provider, call } = await startAnthropic({ apiKey: undefined });
  await errorOf(provider.answer(call()));
  expect(mock.requests[0]?.headers).not.toHaveProperty("x-api-key");
});

test.each([
  ["", "/v1/messages"],
  ["/", "/v1/messages"],
  ["/v1", "/v1/messages"],
  ["/v1/", "/v1/messages"],
  ["/proxy", "/proxy/v1/messages"],
  ["/v1?tenant=a", "/v1/messages?tenant=a"],
])("an address ending in '%s' leads to %s", async (at, path) => {
  const { mock, provider, call } = await startAnthropic({ apiKey: key, at });
  mock.always({ body: { type: "message", content: [] } });
  await provider.answer(call());
  expect(mock.requests[0]?.path).toBe(path);
});

test("only the version and the beta of the caller's headers are sent", async () => {
  const { mock, provider, call, stream, count } = await startAnthropic();
  const headers = {
    "anthropic-version": "2026-10-21",
    "anthropic-beta": "one-2026-01-01,two-2026-02-02",
    "x-api-key": "sk-caller",
    "anthropic-dangerous-direct-browser-access": "true",
  };
  await provider.answer(call(question, { headers }));
  await Array.fromAsync(stream(call(question, { headers })));
  await count(call({ model: "claude-mock", messages: [] }, { headers }));
  await provider.answer(call(question, { headers: { "anthropic-beta": "one-2026-01-01" } }));
  expect(
    mock.requests.map(({ headers }) => [headers["anthropic-version"], headers["anthropic-beta"], headers["x-api-key"]]),
  ).toEqual([
    ["2026-10-21", "one-2026-01-01,two-2026-02-02", key],
    ["2026-10-21", "one-2026-01-01,two-2026-02-02", key],
    ["2026-10-21", "one-2026-01-01,two-2026-02-02", key],
    ["2023-06-01", "one-2026-01-01", key],
  ]);
  for (const { headers } of mock.requests)
    expect(headers).not.toHaveProperty("anthropic-dangerous-direct-browser-access");
});

test("an answer is passed unchanged: reasoning, calls, and unknown blocks", async () => {
  const { mock, provider, call } = await startAnthropic();
  const content = [
    { type: "thinking", thinking: "Hm.", signature: "c2ln" },
    { type: "redacted_thinking", data: "ZGF0YQ==" },
    { type: "tool_use", id: "toolu_1", name: "look", input: { at: ["x"] } },
    { type: "block_of_tomorrow", value: 1 },
  ];
  const usage = { cache_creation_input_tokens: 7, cache_read_input_tokens: 5, service_tier: "standard" };
  mock.respond({ content, usage });
  const message = await provider.answer(call());
  expect(message).toMatchObject({ id: "msg_mock", model: "claude-mock", content, stop_reason: "tool_use", usage });
});

test("a JSON call requests no stream, a stream call requests one", async () => {
  const { mock, provider, call, stream } = await startAnthropic();
  expect(await provider.answer(call({ ...question, stream: true }))).toMatchObject({ type: "message" });
  await Array.fromAsync(stream(call({ ...question, stream: false })));
  expect(mock.requests[0]?.body).toEqual(question);
  expect(mock.requests[1]?.body).toEqual({ ...question, stream: true });
  expect(mock.requests[1]?.headers.accept).toBe("text/event-stream");
});

const tooLarge = Buffer.concat([
  Buffer.from('{"type": "message", "content": ['),
  Buffer.alloc(65 * 1024 * 1024, " "),
  Buffer.from("]}"),
]);

test.each([
  ["a list", { body: "[]" }],
  ["HTML", { body: "<html></html>", headers: { "content-type": "text/html" } }],
  ["no content", { status: 204, body: "" }],
  ["another type", { body: { type: "completion", content: [] } }],
  ["a message without content", { body: { type: "message" } }],
  ["content that is no list", { body: { type: "message", content: "Hi" } }],
  ["content that is no objects", { body: { type: "message", content: ["Hi"] } }],
  ["a message over 64 MB", { body: tooLarge }],
  ["a small answer that unpacks to over 64 MB", { body: tooLarge, encoding: "gzip" as const }],
  ["an answer that is cut", { cutAfter: 0 }],
])("%s is refused as an answer", async (_, answer) => {
  const { mock, provider, call } = await startAnthropic();
  mock.respond(answer);
  expect(await errorOf(provider.answer(call()))).toMatchObject({ name: "UpstreamFailure", kind: "unavailable" });
});

test("tokens are counted by the provider", async () => {
  const { mock, call, count } = await startAnthropic();
  const body = { model: "claude-mock", messages: question.messages, tools: [{ name: "look", input_schema: {} }] };
  mock.respond({ inputTokens: 1234 });
  expect(await count(call(body))).toBe(1234);
  expect(mock.requests[0]).toMatchObject({ method: "POST", path: "/v1/messages/count_tokens" });
  expect(mock.requests[0]?.body).toEqual(body);
  mock.respond({ inputTokens: 0 });
  expect(await count(call(body))).toBe(0);
});

test.each([[-1], [1.5], ["12"], [null], [1e300], [[12]]])("%j is refused as a count", async (inputTokens) => {
  const { mock, call, count } = await startAnthropic();
  mock.respond({ body: { input_tokens: inputTokens } });
  const failure = await errorOf(count(call({ model: "claude-mock", messages: [] })));
  expect(failure).toMatchObject({ name: "UpstreamFailure", kind: "unavailable" });
});

test("embeddings and files are refused without a request", async () => {
  const { mock, provider, call } = await startAnthropic();
  expect(await errorOf(provider.embed(call()))).toMatchObject({ kind: "misconfigured" });
  const { signal } = new AbortController();
  const generation = { task: "image", model: "m", input: {}, uploads: new Map(), job: undefined, signal, log };
  const rest = { ...undisturbed, remember: () => Promise.resolve(), store: () => Promise.resolve() };
  expect(await errorOf(provider.generate({ ...generation, ...rest } as GenerationCall))).toMatchObject({
    kind: "misconfigured",
  });
  expect(mock.requests).toHaveLength(0);
});

test("one connection serves call after call: messages, streams, counts and errors", async () => {
  const { mock, provider, call, stream, count } = await startAnthropic({ apiKey: key, concurrency: 1 });
  for (let i = 0; i < 5; i++) {
    await provider.answer(call());
    await Array.fromAsync(stream());
    await count(call({ model: "claude-mock", messages: [] }));
    mock.respond({ status: 500, body: {} });
    await errorOf(provider.answer(call()));
  }
  expect(mock.connections()).toBe(1);
});

test.each(["answer", "count"] as const)("a disconnected caller closes the connection (%s)", async (method) => {
  const { mock, provider, call } = await startAnthropic();
  mock.respond({ beforeHeaders: new Promise(() => {}) });
  expect(await leave(mock, (signal) => Promise.resolve(provider[method]?.(call(question, { signal }))))).toEqual(letGo);
});
