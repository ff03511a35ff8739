import { expect, test } from "vitest";
import { question, startAnthropic } from "../support/anthropic-provider-setup.ts";
import { mockAnthropicError, mockErrorEvent } from "../support/mock-anthropic.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const start = { type: "message_start", message: { id: "msg_1", usage: { input_tokens: 3, output_tokens: 1 } } };
const block = { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } };
const end = { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } };
const stop = { type: "message_stop" };

test("the events arrive as the provider sent them, including its pings and unknown ones", async () => {
  const { mock, stream } = await startAnthropic();
  const events = [
    start,
    { type: "ping" },
    { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "c2ln" } },
    { type: "event_of_tomorrow", value: [null] },
    end,
    stop,
  ];
  mock.respond({ events });
  expect(await Array.fromAsync(stream())).toEqual(events);
});

test("the usual stream of the provider is one: from its start by pieces of thinking and of a call to its stop", async () => {
  const { stream, call } = await startAnthropic();
  const tools = [{ name: "look", input_schema: { type: "object", properties: { at: {} }, required: ["at"] } }];
  const thinking = { type: "enabled", budget_tokens: 1024 };
  const body = { ...question, tools, thinking, messages: [{ role: "user", content: "look!" }] };
  const events = await Array.fromAsync(stream(call(body)));
  const kinds = events.map(({ type, delta, content_block }) => {
    const { type: inner } = (delta ?? content_block ?? {}) as { type?: string };
    return inner === undefined ? type : `${String(type)} ${inner}`;
  });
  expect(kinds.filter((kind, at) => kind !== kinds[at - 1])).toEqual([
    "message_start",
    "content_block_start thinking",
    "ping",
    "content_block_delta thinking_delta",
    "content_block_delta signature_delta",
    "content_block_stop",
    "content_block_start tool_use",
    "content_block_delta input_json_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
  ]);
});

test.each([
  ["overloaded_error", "busy", 1_000],
  ["rate_limit_error", "busy", 1_000],
  ["api_error", "unavailable", undefined],
  ["error_of_tomorrow", "unavailable", undefined],
  ["timeout_error", "timeout", undefined],
  ["invalid_request_error", "refused", undefined],
  ["authentication_error", "misconfigured", undefined],
  ["billing_error", "misconfigured", undefined],
  ["permission_error", "misconfigured", undefined],
])("%s inside a stream ends it: %s", async (type, kind, retryAfterMs) => {
  const { mock, stream } = await startAnthropic();
  mock.respond({ events: [start, block, mockErrorEvent(type, "It broke."), end, stop] });
  const seen: unknown[] = [];
  const read = async () => {
    for await (const event of stream()) seen.push(event);
  };
  const failure = await errorOf(read());
  expect(failure).toMatchObject({ name: "UpstreamFailure", kind });
  expect((failure as { retryAfterMs?: number }).retryAfterMs).toBe(retryAfterMs);
  expect(seen).toEqual([start, block]);
});

test.each([
  ["that ends before message_stop", { events: [start, block, end] }],
  ["of nothing", { events: [] }],
  ["that does not begin with its message", { events: [end, stop] }],
  ["that is cut", { cutAfter: 4 }],
  ["with [DONE] in the place of its end", { events: [start, "data: [DONE]\n\n"] }],
])("a stream %s fails", async (_, answer) => {
  const { mock, stream } = await startAnthropic();
  mock.respond(answer);
  expect(await errorOf(Array.fromAsync(stream()))).toMatchObject({ name: "UpstreamFailure", kind: "unavailable" });
});

test.each([
  ["no JSON", "event: ping\ndata: hello\n\n"],
  ["no object", "event: ping\ndata: [1]\n\n"],
  ["without a type", "event: ping\ndata: {}\n\n"],
  ["of a type that is no text", 'event: ping\ndata: {"type": 1}\n\n'],
])("an event that is %s breaks the stream", async (_, event) => {
  const { mock, stream } = await startAnthropic();
  mock.respond({ events: [start, event, stop] });
  expect(await errorOf(Array.fromAsync(stream()))).toMatchObject({ kind: "unavailable" });
});

test("message_stop is the end, though the upstream keeps the connection open; a second later it is closed", async () => {
  const { mock, stream, clock } = await startAnthropic();
  mock.respond({ events: [start, end, stop], beforeEnd: new Promise(() => {}) });
  expect(await Array.fromAsync(stream())).toEqual([start, end, stop]);
  const request = await mock.request(0);
  expect(request.aborted).toBe(false);
  clock.advance(1_000);
  await request.closed;
  expect(request.aborted).toBe(true);
});

test.each([
  ["overloaded_error", "busy"],
  ["authentication_error", "misconfigured"],
])("%s in the place of a stream is a failure, with status 200 too", async (type, kind) => {
  const { mock, stream } = await startAnthropic();
  mock.respond({ body: mockErrorEvent(type, "Not now.") });
  expect(await errorOf(Array.fromAsync(stream()))).toMatchObject({ kind });
});

test("a whole message in the place of a stream is no stream", async () => {
  const { mock, stream } = await startAnthropic();
  mock.respond({ body: { type: "message", content: [{ type: "text", text: "Hi" }] } });
  expect(await errorOf(Array.fromAsync(stream()))).toMatchObject({ kind: "unavailable" });
});

test("a stream that is refused at once fails before its first event", async () => {
  const { mock, stream } = await startAnthropic();
  mock.respond(mockAnthropicError(529, "Overloaded", { headers: { "retry-after": "3" } }));
  expect(await errorOf(stream().next())).toMatchObject({ kind: "busy", status: 529, retryAfterMs: 3_000 });
});

test("a compressed stream is read", async () => {
  const { mock, stream } = await startAnthropic();
  mock.respond({ events: [start, end, stop], encoding: "gzip" });
  expect(await Array.fromAsync(stream())).toEqual([start, end, stop]);
});

test("a caller who leaves in the middle of a stream closes the connection", async () => {
  const { mock, stream, call } = await startAnthropic();
  mock.respond({ events: [start, stop], beforeEvent: { 1: new Promise(() => {}) } });
  const caller = new AbortController();
  const events = stream(call(question, { signal: caller.signal }));
  expect((await events.next()).value).toEqual(start);
  const next = errorOf(events.next());
  const reason = new Error("disconnected");
  caller.abort(reason);
  expect(await next).toBe(reason);
  const request = await mock.request(0);
  await request.closed;
  expect(request.aborted).toBe(true);
});
