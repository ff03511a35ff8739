import { expect, test } from "vitest";
import { mockAnthropicError } from "../support/mock-anthropic.ts";
import { startAnthropic } from "../support/provider-setup.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const key = "sk-ant-operator";

test("a request is sent unchanged, with unknown fields, under the operator's key", async () => {
  const { mock, ask, text } = await startAnthropic();
  const asked = text({
    system: [{ type: "text", text: "Be kind.", cache_control: { type: "ephemeral", ttl: "1h" } }],
    messages: [{ role: "user", content: [{ type: "text", text: "Hi", citations: null }] }],
    temperature: 0,
    vendor_field: { deep: [1, null] },
  });
  await ask("answer", asked);
  expect(mock.requests).toHaveLength(1);
  expect(mock.requests[0]).toMatchObject({ method: "POST", path: "/v1/messages" });
  expect(mock.requests[0]?.body).toEqual(asked.body);
  expect(mock.requests[0]?.headers).toMatchObject({
    "x-api-key": key,
    "anthropic-version": "2023-06-01",
    "content-type": "application/json",
    "accept-encoding": "identity",
  });
  expect(mock.requests[0]?.headers).not.toHaveProperty("anthropic-beta");
  expect(mock.requests[0]?.headers).not.toHaveProperty("authorization");
});

test.each([
  ["", "/v1/messages"],
  ["/", "/v1/messages"],
  ["/v1", "/v1/messages"],
  ["/v1/", "/v1/messages"],
  ["/proxy", "/proxy/v1/messages"],
  ["/v1?tenant=a", "/v1/messages?tenant=a"],
])("an address ending in '%s' leads to %s", async (end, path) => {
  const { mock, ask } = await startAnthropic({ baseUrl: (url) => url + end });
  mock.always({ body: { type: "message", content: [] } });
  await ask("answer");
  expect(mock.requests[0]?.path).toBe(path);
});

test("only the version and the beta of the caller's headers are sent", async () => {
  const { mock, ask, text } = await startAnthropic();
  const headers = {
    "anthropic-version": "2026-10-21",
    "anthropic-beta": "one-2026-01-01,two-2026-02-02",
    "x-api-key": "sk-caller",
    "anthropic-dangerous-direct-browser-access": "true",
  };
  for (const way of ["answer", "stream", "count"] as const) await ask(way, text({}, { headers }));
  await ask("answer", text({}, { headers: { "anthropic-beta": "one-2026-01-01" } }));
  const sent = mock.requests.map((request) => request.headers);
  expect(sent.map((each) => [each["anthropic-version"], each["anthropic-beta"], each["x-api-key"]])).toEqual([
    ...Array(3).fill(["2026-10-21", "one-2026-01-01,two-2026-02-02", key]),
    ["2023-06-01", "one-2026-01-01", key],
  ]);
  for (const each of sent) expect(each).not.toHaveProperty("anthropic-dangerous-direct-browser-access");
});

test("an answer is passed unchanged: reasoning, calls, and unknown blocks", async () => {
  const { mock, ask } = await startAnthropic();
  const content = [
    { type: "thinking", thinking: "Hm.", signature: "c2ln" },
    { type: "redacted_thinking", data: "ZGF0YQ==" },
    { type: "tool_use", id: "toolu_1", name: "look", input: { at: ["x"] } },
    { type: "block_of_tomorrow", value: 1 },
  ];
  const usage = { cache_creation_input_tokens: 7, cache_read_input_tokens: 5, service_tier: "standard" };
  mock.respond({ content, usage });
  const stop = { id: "msg_mock", model: "claude-mock", stop_reason: "tool_use" };
  expect(await ask("answer")).toMatchObject({ ...stop, content, usage });
});

test("a JSON call requests no stream, a stream call requests one", async () => {
  const { mock, ask, text } = await startAnthropic();
  expect(await ask("answer", text({ stream: true }))).toMatchObject({ type: "message" });
  await ask("stream", text({ stream: false }));
  expect(mock.requests.map(({ body }) => body)).toEqual([text().body, { ...text().body, stream: true }]);
  expect(mock.requests[1]?.headers.accept).toBe("text/event-stream");
});

test("tokens are counted by the provider, without the fields that control the answer", async () => {
  const { mock, ask, text } = await startAnthropic();
  const tools = [{ name: "look", input_schema: {} }];
  mock.respond({ inputTokens: 1234 }, { inputTokens: 0 });
  const { max_tokens: _, ...body } = text({ tools }).body;
  expect(await ask("count", text({ tools, temperature: 1, stream: true }))).toBe(1234);
  expect(mock.requests[0]).toMatchObject({ method: "POST", path: "/v1/messages/count_tokens" });
  expect(mock.requests[0]?.body).toEqual(body);
  expect(await ask("count")).toBe(0);
});

test("the events arrive as the provider sent them, including its pings and unknown ones, compressed or not", async () => {
  const { mock, ask } = await startAnthropic();
  const events = [
    { type: "message_start", message: { id: "msg_1", usage: { input_tokens: 3, output_tokens: 1 } } },
    { type: "ping" },
    { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "c2ln" } },
    { type: "event_of_tomorrow", value: [null] },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
    { type: "message_stop" },
  ];
  mock.respond({ events }, { events, encoding: "gzip" });
  expect(await ask("stream")).toEqual(events);
  expect(await ask("stream")).toEqual(events);
});

test("a stream that is refused at once fails before its first event", async () => {
  const { mock, stream } = await startAnthropic();
  mock.respond(mockAnthropicError(529, "Overloaded", { headers: { "retry-after": "3" } }));
  expect(await errorOf(stream().next())).toMatchObject({ kind: "busy", status: 529, retryAfterMs: 3_000 });
});
