import { describe, expect, test } from "vitest";
import type { JsonObject } from "#json";
import { leave, letGo } from "../support/disconnecting.ts";
import { mockErrorEvent } from "../support/mock-anthropic.ts";
import { mockChunk, mockError } from "../support/mock-openai.ts";
import type { ProviderAnswer } from "../support/mock-provider.ts";
import { startAnthropic, startGemini, startProvider, type Way } from "../support/provider-setup.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const keyed = ["openai", "responses", "anthropic", "gemini"] as const;
const names = [...keyed, "vertex"] as const;
type Name = (typeof names)[number];

const said = (text: string, finishReason?: string) => ({
  candidates: [{ content: { parts: [{ text }], role: "model" }, ...(finishReason && { finishReason }), index: 0 }],
});
const begun = { type: "message_start", message: { id: "msg_1", usage: { input_tokens: 3, output_tokens: 1 } } };
const ended = { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } };
const created = { type: "response.created", sequence_number: 0, response: { id: "resp_1", status: "in_progress" } };
const completed = { type: "response.completed", sequence_number: 1, response: { id: "resp_1", status: "completed" } };
/** The events of a short stream. */
const streams: Readonly<Record<Name, readonly [JsonObject, ...JsonObject[]]>> = {
  openai: [mockChunk({ content: "a" }), mockChunk({}, "stop")],
  responses: [created, completed],
  anthropic: [begun, ended, { type: "message_stop" }],
  gemini: [said("Hi "), said("there", "STOP")],
  vertex: [said("Hi "), said("there", "STOP")],
};
const never = new Promise(() => {});
const noAnswer = { name: "UpstreamFailure", kind: "unavailable" };

test.each(keyed)("%s: an upstream without a key gets none", async (name) => {
  const { mock, ask } = await startProvider(name, { apiKey: undefined });
  await errorOf(ask("answer"));
  for (const header of ["authorization", "x-api-key", "x-goog-api-key"])
    expect(mock.requests[0]?.headers).not.toHaveProperty(header);
});

describe.each(names)("%s", (name) => {
  test("one connection serves call after call: answers, streams, counts and errors", async () => {
    const { mock, ask, text } = await startProvider(name, { concurrency: 1 });
    for (let i = 0; i < 5; i++) {
      await ask("answer");
      await ask("stream");
      await ask("count", text());
      mock.respond(mockError(500, "no"));
      await errorOf(ask("answer"));
    }
    expect(mock.connections()).toBe(1);
  });

  test("a caller who disconnects in the middle of a stream frees the connection", async () => {
    const { mock, ask, text, stream } = await startProvider(name, { concurrency: 1 });
    mock.respond({ events: streams[name], beforeEvent: { 1: never } });
    const caller = new AbortController();
    const events = stream(text({}, { signal: caller.signal }));
    expect((await events.next()).value).toEqual(streams[name][0]);
    const next = errorOf(events.next());
    const reason = new Error("disconnected");
    caller.abort(reason);
    expect(await next).toBe(reason);
    const request = await mock.request(0);
    await request.closed;
    expect(request.aborted).toBe(true);
    expect(await ask("answer")).toBeTruthy();
  });
});

// A stream of Google has no last event.
test.each(["openai", "responses", "anthropic"] as const)(
  "%s: the last event is the end, though the upstream keeps the connection open; a second later it is closed",
  async (name) => {
    const { mock, ask, clock } = await startProvider(name);
    mock.respond({ events: streams[name], beforeEnd: never });
    expect(await ask("stream")).toEqual(streams[name]);
    const request = await mock.request(0);
    expect(request.aborted).toBe(false);
    clock.advance(1_000);
    await request.closed;
    expect(request.aborted).toBe(true);
  },
);

test.each<readonly [Name, Way, ProviderAnswer]>([
  ["openai", "answer", { events: ['{"choices": [', "]}"], beforeEvent: { 1: never } }],
  ["openai", "embed", { events: ['{"data": [', "]}"], beforeEvent: { 1: never } }],
  ["anthropic", "answer", { beforeHeaders: never }],
  ["anthropic", "count", { beforeHeaders: never }],
  ["gemini", "embed", { beforeHeaders: never }],
])("%s: a caller who disconnects before the end of an answer (%s) closes the connection", async (name, way, answer) => {
  const { mock, ask, text } = await startProvider(name);
  mock.respond(answer);
  const body = { input: "Hi" };
  expect(await leave(mock, (signal) => ask(way, text(body, { signal })))).toEqual(letGo);
});

test.each<readonly [Name, body: unknown, kind: string]>([
  ["openai", { error: { message: "overloaded", type: "rate_limit_error" } }, "busy"],
  ["openai", { choices: [] }, "unavailable"],
  ["anthropic", mockErrorEvent("overloaded_error", "Not now."), "busy"],
  ["anthropic", mockErrorEvent("authentication_error", "Not now."), "misconfigured"],
  ["anthropic", { type: "message", content: [{ type: "text", text: "Hi" }] }, "unavailable"],
  ["gemini", { error: { code: 503, message: "overloaded", status: "UNAVAILABLE" } }, "unavailable"],
])("%s: JSON in the place of a stream is a failure: %j", async (name, body, kind) => {
  const { mock, ask } = await startProvider(name);
  mock.respond({ body });
  expect(await errorOf(ask("stream"))).toMatchObject({ kind });
});

const problem = (type: string) => mockErrorEvent(type, "It broke.");
const error = (code: number, status: string) => ({ error: { code, message: "It broke.", status } });
const flagged = { message: "No.", type: "invalid_request_error", param: "messages", code: "content_filter" };

test.each<readonly [Name, event: JsonObject, kind: string]>([
  ["openai", { error: { message: "oops", type: "server_error", code: null } }, "unavailable"],
  ["openai", { error: { message: "busy", code: 429 } }, "busy"],
  ["openai", { error: flagged }, "refused"],
  ["responses", { type: "error", code: "server_error", message: "It broke.", param: null }, "unavailable"],
  ["responses", { type: "error", error: { type: "server_error", code: null, message: "Oops." } }, "unavailable"],
  ["responses", { type: "error", code: "rate_limit_exceeded", message: "Slowly.", param: null }, "busy"],
  ["responses", { type: "error", error: { type: "invalid_request_error", message: "No.", param: "input" } }, "refused"],
  ["responses", { type: "error", code: null, message: "Nobody knows.", param: null }, "unavailable"],
  ["anthropic", problem("overloaded_error"), "busy"],
  ["anthropic", problem("rate_limit_error"), "busy"],
  ["anthropic", problem("api_error"), "unavailable"],
  ["anthropic", problem("error_of_tomorrow"), "unavailable"],
  ["anthropic", problem("timeout_error"), "timeout"],
  ["anthropic", problem("invalid_request_error"), "refused"],
  ["anthropic", problem("authentication_error"), "misconfigured"],
  ["anthropic", problem("billing_error"), "misconfigured"],
  ["anthropic", problem("permission_error"), "misconfigured"],
  ["gemini", error(429, "RESOURCE_EXHAUSTED"), "busy"],
  ["gemini", error(503, "UNAVAILABLE"), "unavailable"],
  ["gemini", error(500, "INTERNAL"), "unavailable"],
  ["gemini", error(504, "DEADLINE_EXCEEDED"), "timeout"],
  ["gemini", error(400, "INVALID_ARGUMENT"), "refused"],
  ["gemini", { error: { message: "Full.", status: "RESOURCE_EXHAUSTED" } }, "busy"],
])("%s: an error inside a stream ends it, after what came before: %j is %s", async (name, event, kind) => {
  const { mock, readFailing } = await startProvider(name);
  const [first, ...rest] = streams[name];
  mock.respond({ events: [first, event, ...rest] });
  const { failure, events } = await readFailing();
  expect(failure).toMatchObject({ name: "UpstreamFailure", kind });
  const { retryAfterMs, param } = failure as { retryAfterMs?: number; param?: string };
  expect(retryAfterMs).toBe(kind === "busy" ? 1_000 : undefined);
  expect(param).toBe({ openai: "messages", responses: "input" }[kind === "refused" ? String(name) : ""]);
  expect(events).toEqual([first]);
});

const done = "data: [DONE]\n\n";
const blocked = { candidates: [{}], promptFeedback: { blockReason: "SAFETY" } };

test.each<[Name, what: string, events: readonly unknown[], more?: ProviderAnswer]>([
  ["openai", "without an end", [mockChunk({ content: "a" })], { done: false }],
  ["responses", "without its last event", [created]],
  ["responses", "with [DONE] in the place of its last event", [created, done]],
  ["responses", "of nothing", []],
  ["anthropic", "without message_stop", [begun, ended]],
  ["anthropic", "with [DONE] in the place of its end", [begun, done]],
  ["anthropic", "of nothing", []],
  ["gemini", "that breaks off after a word", [said("Hi")]],
  ["gemini", "of nothing", []],
  ["gemini", "that tells no reason", [said("Hi", "FINISH_REASON_UNSPECIFIED")]],
  ["gemini", "of usage alone", [{ usageMetadata: { promptTokenCount: 1 } }]],
  ["gemini", "blocked for no reason", [{ promptFeedback: { blockReason: "BLOCK_REASON_UNSPECIFIED" } }]],
  ["gemini", "that blocks what it has begun", [said("Hi"), blocked]],
])("%s: a stream %s fails, and what came is delivered", async (name, _, events, more = {}) => {
  const { mock, readFailing } = await startProvider(name);
  mock.respond({ events, ...more });
  const { failure, events: seen } = await readFailing();
  expect(failure).toMatchObject({ ...noAnswer, message: "the stream ended before its end" });
  expect(seen).toEqual(events.filter((each) => each !== done));
});

test.each<readonly [Name, event: unknown]>([
  ["openai", "data: hello\n\n"],
  ["openai", "data: 42\n\n"],
  ["openai", { choices: 1 }],
  ["anthropic", "event: ping\ndata: [1]\n\n"],
  ["anthropic", "event: ping\ndata: {}\n\n"],
  ["anthropic", 'event: ping\ndata: {"type": 1}\n\n'],
  ["gemini", { candidates: {} }],
  ["gemini", { candidates: ["Hi"] }],
])("%s: a stream with %j is broken", async (name, event) => {
  const { mock, ask } = await startProvider(name);
  const [first, ...rest] = streams[name];
  mock.respond({ events: [first, event, ...rest] });
  expect(await errorOf(ask("stream"))).toMatchObject(noAnswer);
});

test("a stream of Anthropic that does not begin with its message is broken", async () => {
  const { mock, ask } = await startAnthropic();
  mock.respond({ events: streams.anthropic.slice(1) });
  expect(await errorOf(ask("stream"))).toMatchObject(noAnswer);
});

const tooLarge = Buffer.concat([Buffer.from('{"choices": ['), Buffer.alloc(65 * 1024 * 1024, " "), Buffer.from("]}")]);

test.each<readonly [what: string, answer: ProviderAnswer]>([
  ["an unknown encoding", { headers: { "content-encoding": "zip" } }],
  ["broken gzip", { headers: { "content-encoding": "gzip" } }],
  ["an answer over 64 MB", { body: tooLarge }],
  ["a small answer that unpacks to over 64 MB", { body: tooLarge, encoding: "gzip" }],
  ["an answer that is cut", { cutAfter: 0 }],
  ["no content", { status: 204, body: "" }],
  ["a page", { body: "<html></html>", headers: { "content-type": "text/html" } }],
  ["a list", { body: "[]" }],
])("%s is refused as an answer", async (_, answer) => {
  const { mock, ask } = await startProvider("openai");
  mock.respond(answer);
  expect(await errorOf(ask("answer"))).toMatchObject(noAnswer);
});

test.each<readonly [Name, Way, body: unknown]>([
  ["openai", "answer", { choices: {} }],
  ["openai", "answer", { choices: [null] }],
  ["responses", "answer", { object: "response", status: "completed" }],
  ["responses", "answer", { object: "response", status: "completed", output: {} }],
  ["responses", "answer", { object: "response", status: "completed", output: [1] }],
  ["responses", "answer", { object: "response", status: "cancelled", error: null, output: [] }],
  ["responses", "answer", { object: "chat.completion", choices: [{ message: {} }] }],
  ["anthropic", "answer", { type: "completion", content: [] }],
  ["anthropic", "answer", { type: "message" }],
  ["anthropic", "answer", { type: "message", content: "Hi" }],
  ["anthropic", "answer", { type: "message", content: ["Hi"] }],
  ...[-1, 1.5, "12", null, 1e300, [12]].map((input_tokens) => ["anthropic", "count", { input_tokens }] as const),
  ["gemini", "answer", {}],
  ["gemini", "answer", { candidates: [] }],
  ["gemini", "answer", { candidates: { 0: {} } }],
  ["gemini", "answer", { candidates: [null] }],
  ["gemini", "answer", { candidates: [7], promptFeedback: { blockReason: "SAFETY" } }],
  ["gemini", "answer", { promptFeedback: { blockReason: "BLOCK_REASON_UNSPECIFIED" } }],
  ["gemini", "answer", { error: { code: 500, message: "oops", status: "INTERNAL" } }],
  ...[undefined, "7", 1.5, -1, null, 1e300].map((totalTokens) => ["gemini", "count", { totalTokens }] as const),
  ["gemini", "embed", {}],
  ["gemini", "embed", { embeddings: [{ values: [1] }] }],
  ["gemini", "embed", { embeddings: [1, 2, 3].map((value) => ({ values: [value] })) }],
  ["gemini", "embed", { embeddings: [{ values: [1] }, {}] }],
  ["gemini", "embed", { embeddings: [{ values: [1] }, { values: [] }] }],
  ["gemini", "embed", { embeddings: [{ values: [1] }, { values: ["1"] }] }],
  ["gemini", "embed", { embeddings: [{ values: [1] }, { values: [null] }] }],
])("%s: what is no answer to a call (%s) is the provider's failure: %j", async (name, way, body) => {
  const { mock, ask, text } = await startProvider(name);
  mock.respond({ body });
  const asked = way === "embed" ? text({ input: ["one", "two"] }) : text();
  expect(await errorOf(ask(way, asked))).toMatchObject(noAnswer);
});

test("what a provider does not offer is refused without a request", async () => {
  const [anthropic, gemini, responses, replicate] = [
    await startAnthropic(),
    await startGemini(),
    await startProvider("responses"),
    await startProvider("replicate"),
  ];
  const foreign = { format: "chat" } as const;
  const failing = [
    anthropic.ask("embed"),
    anthropic.provider.generate(anthropic.call("images", {})),
    gemini.ask("answer", gemini.text({}, foreign)),
    gemini.ask("count", gemini.text({}, foreign)),
    gemini.provider.generate(gemini.call("music", {})),
    gemini.provider.generate(gemini.call("transcription", {})),
    responses.ask("answer", responses.text({}, { format: "gemini" })),
    responses.ask("stream", responses.text({}, { format: "gemini" })),
    responses.provider.generate(responses.call("music", {})),
    ...(["answer", "stream", "embed"] as const).map((way) => replicate.ask(way)),
  ];
  for (const each of failing) expect(await errorOf(each)).toMatchObject({ kind: "misconfigured" });
  for (const { mock } of [anthropic, gemini, responses, replicate]) expect(mock.requests).toEqual([]);
});
