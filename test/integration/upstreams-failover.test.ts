import { expect, test } from "vitest";
import { type Provider, UpstreamFailure } from "../../workers/providers/index.ts";
import { mockError, mockText } from "../support/mock-openai.ts";
import { errorOf, gate, startUpstreams } from "../support/upstreams-setup.ts";

test("the first available upstream serves, under its own name for the model", async () => {
  const { mocks, call } = await startUpstreams(2);
  const { json, record } = call();
  expect(await json()).toMatchObject({ choices: [{ message: { content: mockText } }] });
  expect(record).toMatchObject({ attempts: 1, upstream: "provider-0" });
  expect(mocks[0].requests[0]?.body["model"]).toBe("own-name-0");
  expect(mocks[0].requests[0]?.headers.authorization).toBe("Bearer sk-operator-0");
  expect(mocks[1]?.requests).toHaveLength(0);
});

test.each([
  [500, "unavailable"],
  [504, "timeout"],
  [429, "busy"],
  [401, "misconfigured"],
])("status %i (%s) moves on to the next upstream", async (status) => {
  const { mocks, call } = await startUpstreams(2);
  mocks[0].always(mockError(status, "not now"));
  for (const way of ["json", "stream"] as const) {
    const { record, ...ways } = call();
    await ways[way]();
    expect(record.upstream).toBe("provider-1");
  }
});

test("after the first item there is no failover: the failure reaches the reader", async () => {
  const { mocks, call } = await startUpstreams(2);
  mocks[0].always({ cutAfter: 3 });
  const { stream, record } = call();
  const items = await stream();
  const seen: unknown[] = [];
  const read = async () => {
    for await (const item of items) seen.push(item);
  };
  expect(await errorOf(read())).toMatchObject({ code: "upstream_error", status: 502 });
  expect(seen).toHaveLength(3);
  expect(record).toMatchObject({ attempts: 1, upstream: "provider-0" });
  expect(mocks[1]?.requests).toHaveLength(0);
});

test("a refusal is the caller's own: 400 with the provider's text, and nobody else is asked", async () => {
  const { mocks, call, upstreams } = await startUpstreams(2);
  mocks[0].always(mockError(422, "temperature is over 2", { param: "temperature" }));
  for (let i = 0; i < 6; i++) {
    const { json, record } = call();
    expect(await errorOf(json())).toMatchObject({
      code: "invalid_value",
      status: 400,
      message: "temperature is over 2",
      param: "temperature",
    });
    expect(record).toMatchObject({ attempts: 1, upstream: "provider-0" });
  }
  expect(upstreams.states()["provider-0"]).toBe("ready");
  expect(mocks[1]?.requests).toHaveLength(0);
});

const tooLong = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.";

test.each([
  ["a context that is too short", mockError(400, tooLong), "context_length_exceeded"],
  [
    "a code for it",
    mockError(400, "Please shorten it.", { code: "context_length_exceeded" }),
    "context_length_exceeded",
  ],
  ["a lower bound of the output", mockError(400, "`max_tokens` must be less than or equal to `8192`"), "invalid_value"],
  ["a missing feature", mockError(400, "response_format is not supported"), "invalid_value"],
  ["a body that is too large", mockError(413, "Request Entity"), "invalid_value"],
  ["an unknown field", mockError(422, "Extra inputs are not permitted", { param: "logprobs" }), "invalid_value"],
])(
  "%s is the limit of one host: the next upstream is asked, and the refusal is the answer if there is none",
  async (...row) => {
    const [, answer, code] = row;
    const { mocks, call } = await startUpstreams(2);
    mocks[0].always(answer);
    for (const way of ["json", "stream"] as const) {
      const { record, ...ways } = call();
      await ways[way]();
      expect(record).toMatchObject({ attempts: 2, upstream: "provider-1" });
    }
    mocks[1]?.always(answer);
    expect(await errorOf(call().json())).toMatchObject({ code, status: 400 });
    mocks[1]?.always(mockError(500, "down"));
    expect(await errorOf(call().json())).toMatchObject({ code, status: 400 });
  },
);

test("a judgement of the content is no limit of a host, whatever its text says", async () => {
  const { mocks, call } = await startUpstreams(2);
  const message = "Such images are not supported: they are too large a risk.";
  mocks[0].always(mockError(400, message, { code: "content_policy_violation" }));
  expect(await errorOf(call().json())).toMatchObject({ code: "content_policy_violation", status: 400 });
  expect(mocks[1]?.requests).toHaveLength(0);
});

test("while another host may take the call soon, a host's own limit is not the answer", async () => {
  const { mocks, call } = await startUpstreams(2);
  mocks[0].always(mockError(400, "Tool choice must be auto"));
  mocks[1]?.respond(mockError(429, "slow down"));
  expect(await errorOf(call().json())).toMatchObject({ code: "no_capacity", status: 503 });
});

test("more tokens than a host takes in a minute: the next upstream, else 429, and small calls continue", async () => {
  const { mocks, call } = await startUpstreams(2);
  const message = "Request too large for model `m` in organization `org_1`: Limit 8000, Requested 32979.";
  const headers = { "retry-after": "45" };
  const tooManyTokens = mockError(413, message, { type: "tokens", code: "rate_limit_exceeded", headers });
  mocks[0].respond(tooManyTokens, tooManyTokens);
  const first = call();
  await first.json();
  expect(first.record).toMatchObject({ attempts: 2, upstream: "provider-1" });
  mocks[1]?.respond(tooManyTokens);
  const error = await errorOf(call().json());
  expect(error).toMatchObject({ code: "rate_limit_exceeded", status: 429, shouldRetry: false });
  expect((error as Error).message).not.toMatch(/org_|8000/);
  const next = call();
  await next.json();
  expect(next.record).toMatchObject({ attempts: 1, upstream: "provider-0" });
});

test.each([
  ["at the top", (detail: unknown) => ({ detail })],
  ["in the message", (detail: unknown) => ({ object: "error", message: { detail }, type: "invalid_request_error" })],
])("a server that validates by pydantic names the field in `detail[]` %s", async (_, body) => {
  const { mocks, call } = await startUpstreams(1);
  const place = ["body", "messages", 1, "assistant", "reasoning_content"];
  const detail = [{ type: "extra_forbidden", loc: place, msg: "Extra inputs are not permitted", input: "secret" }];
  mocks[0].always({ status: 422, body: body(detail) });
  expect(await errorOf(call().json())).toMatchObject({
    code: "invalid_value",
    param: "messages[1].assistant.reasoning_content",
    message: "messages[1].assistant.reasoning_content: Extra inputs are not permitted",
  });
});

test("all upstreams failing is 502, all being too slow is 504", async () => {
  const { mocks, call, clock } = await startUpstreams(2);
  for (const mock of mocks) mock.respond(mockError(500, "no"));
  expect(await errorOf(call().json())).toMatchObject({ code: "upstream_error", status: 502 });

  for (const mock of mocks) mock.respond({ beforeHeaders: new Promise(() => {}) });
  const slow = errorOf(call().json());
  await mocks[0].request(1);
  clock.advance(60_000);
  await mocks[1]?.request(1);
  clock.advance(60_000);
  expect(await slow).toMatchObject({ code: "upstream_timeout", status: 504 });
});

test.each([
  ["seconds", { "retry-after": "7" }, 7],
  ["milliseconds", { "retry-after-ms": "2500", "retry-after": "9" }, 3],
  ["more than a minute", { "retry-after": "3600" }, 60],
  ["nothing", {}, 1],
])(
  "429 with Retry-After as %s leaves the upstream alone that long, and tells the caller",
  async (_, headers, seconds) => {
    const { mocks, call, clock, upstreams } = await startUpstreams(1);
    mocks[0].respond(mockError(429, "slow down", { headers: headers as Record<string, string> }));
    const expected = { code: "no_capacity", status: 503, retryAfterSeconds: seconds };
    expect(await errorOf(call().json())).toMatchObject(expected);
    expect(await errorOf(call().json())).toMatchObject(expected);
    expect(mocks[0].requests).toHaveLength(1);
    expect(upstreams.states()["provider-0"]).toBe("ready");

    clock.advance(seconds * 1000);
    await call().json();
    expect(mocks[0].requests).toHaveLength(2);
  },
);

test("an upstream with a cooldown for one model serves others", async () => {
  const { mocks, call } = await startUpstreams(1);
  mocks[0].respond(mockError(503, "busy", { headers: { "retry-after": "30" } }));
  await errorOf(call().json());
  await call("test/model-0").json();
  expect(mocks[0].requests).toHaveLength(2);
});

test("Retry-After is that of the upstream which comes back first", async () => {
  const { mocks, call } = await startUpstreams(2);
  mocks[0].always(mockError(429, "", { headers: { "retry-after": "40" } }));
  mocks[1]?.always(mockError(429, "", { headers: { "retry-after": "9" } }));
  expect(await errorOf(call().json())).toMatchObject({ code: "no_capacity", retryAfterSeconds: 9 });
});

test("an upstream without its key is skipped, and its state says so", async () => {
  const { call, upstreams } = await startUpstreams(2, { env: { PROVIDER_0_API_KEY: "" } });
  expect(upstreams.states()).toEqual({ "provider-0": "no key", "provider-1": "ready" });
  const { json, record } = call();
  await json();
  expect(record.upstream).toBe("provider-1");
  expect(await errorOf(call("test/model-0").json())).toMatchObject({ code: "no_capacity" });
});

test("an invalid address stops the start with a message that names its variable", async () => {
  await expect(startUpstreams(1, { env: { PROVIDER_0_BASE_URL: "example.com:443" } })).rejects.toThrow(
    /PROVIDER_0_BASE_URL/,
  );
});

test("an error of the work itself passes unchanged, and the slot is free", async () => {
  const { upstreams, call } = await startUpstreams(1, { concurrency: 1 });
  const defect = new Error("a defect");
  const failing = upstreams.once(call().request, () => Promise.reject(defect));
  await expect(failing).rejects.toBe(defect);
  await call().json();
});

test("no other upstream is tried for a caller who has disconnected", async () => {
  const { mocks, upstreams, call } = await startUpstreams(2);
  const { request, record } = call();
  const caller = new AbortController();
  const gone = new Error("disconnected");
  const failing = upstreams.once({ ...request, disconnected: caller.signal }, () => {
    caller.abort(gone);
    return Promise.reject(new UpstreamFailure("unavailable", "down"));
  });
  await expect(failing).rejects.toBe(gone);
  expect(record).toMatchObject({ attempts: 1, upstream: "provider-0" });
  expect(mocks[1]?.requests).toHaveLength(0);
});

test("an upstream whose provider lacks what the call needs is not called", async () => {
  const { upstreams, call } = await startUpstreams(2);
  const served = (request: ReturnType<typeof call>["request"], supports: (provider: Provider) => boolean) =>
    upstreams.once({ ...request, supports }, async ({ upstream }) => upstream.provider);
  const first = await served(call().request, () => true);
  const { request, record } = call();
  expect(await served(request, (provider) => provider !== first)).not.toBe(first);
  expect(record).toMatchObject({ attempts: 1, upstream: "provider-1" });
  await expect(served(call().request, () => false)).rejects.toMatchObject({ status: 503 });
});

test("a call whose caller has disconnected calls no upstream", async () => {
  const { mocks, call } = await startUpstreams(1);
  const reason = new Error("disconnected");
  await expect(call("test/model", AbortSignal.abort(reason)).json()).rejects.toBe(reason);
  expect(mocks[0].requests).toHaveLength(0);
});

test("failover ends with the first item, not with the headers", async () => {
  const { mocks, call } = await startUpstreams(2);
  const first = gate();
  mocks[0].respond({ beforeEvent: { 0: first.promise }, cutAfter: 0 });
  const { stream, record } = call();
  const items = stream();
  await mocks[0].request(0);
  first.resolve();
  await Array.fromAsync(await items);
  expect(record.upstream).toBe("provider-1");
});
