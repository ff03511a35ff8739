import { expect, test } from "vitest";
import { question, startAnthropic } from "../support/anthropic-provider-setup.ts";
import { mockAnthropicError, mockErrorEvent } from "../support/mock-anthropic.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const secret = "the provider's own words";

test.each([
  [400, "refused", "invalid_request_error"],
  [401, "misconfigured", "authentication_error"],
  [402, "misconfigured", "billing_error"],
  [403, "misconfigured", "permission_error"],
  [404, "misconfigured", "not_found_error"],
  [409, "unavailable", "conflict_error"],
  [413, "refused", "request_too_large"],
  [429, "busy", "rate_limit_error"],
  [500, "unavailable", "api_error"],
  [504, "timeout", "timeout_error"],
  [529, "busy", "overloaded_error"],
])(
  "status %i is %s (%s), of messages, streams and counts alike, and is not asked again",
  async (status, kind, type) => {
    const { mock, provider, call, stream, count } = await startAnthropic();
    mock.always(mockAnthropicError(status, secret));
    const failures = [
      await errorOf(provider.answer(call())),
      await errorOf(Array.fromAsync(stream())),
      await errorOf(count(call({ model: "claude-mock", messages: [] }))),
    ];
    for (const failure of failures)
      expect(failure).toMatchObject({
        name: "UpstreamFailure",
        kind,
        status,
        message: kind === "refused" ? secret : `status ${status}: ${secret}`,
        ...(kind === "busy" && { retryAfterMs: 1_000 }),
      });
    expect(mock.requests).toHaveLength(3);
    expect(await (await fetch(`${mock.url}/v1/messages`, { method: "POST" })).json()).toMatchObject({
      error: { type },
    });
  },
);

test.each([
  [429, { "retry-after": "17" }, 17_000],
  [529, { "retry-after": "2" }, 2_000],
  [429, { "retry-after": "Thu, 01 Jan 2026 00:00:30 GMT" }, 30_000],
  [429, { "retry-after": "Wed, 31 Dec 2025 00:00:00 GMT" }, 0],
  [429, { "retry-after": "soon" }, 1_000],
  [429, { "retry-after-ms": "250", "retry-after": "1" }, 250],
  [503, { "retry-after": "4" }, 4_000],
])("status %i with %j leaves the provider alone for %i ms", async (status, headers, retryAfterMs) => {
  const { mock, provider, call } = await startAnthropic();
  mock.respond(mockAnthropicError(status, "Later.", { headers }));
  expect(await errorOf(provider.answer(call()))).toMatchObject({ kind: "busy", retryAfterMs });
});

test.each([
  [400, "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.", undefined],
  [400, "You have reached your specified API usage limits. You will regain access on 2026-12-01.", undefined],
  [400, "You have reached your specified workspace API usage limits.", undefined],
  [400, "This organization has been disabled.", undefined],
  [400, "No.", "organization_on_hold"],
  [400, "No.", "contract_spend_limit_reached"],
  [429, "No.", "enforced_spend_limit_reached"],
  [400, "No.", "cmek_key_disabled"],
])("the operator's own account is not the caller's fault, and no wait helps: %i %s %s", async (status, text, code) => {
  const { mock, provider, call } = await startAnthropic();
  const details = code === undefined ? {} : { details: { error_code: code } };
  mock.respond(mockAnthropicError(status, text, details));
  const failure = await errorOf(provider.answer(call()));
  expect(failure).toMatchObject({ kind: "misconfigured", status });
  expect((failure as { retryAfterMs?: number }).retryAfterMs).toBeUndefined();
});

test.each([
  [400, "refused", "image_dimensions_too_large"],
  [429, "busy", "ramp_limit_exceeded"],
  [500, "unavailable", "enforced_spend_limit_reached"],
])("other details change nothing: %i is %s with %s", async (status, kind, code) => {
  const { mock, provider, call } = await startAnthropic();
  mock.respond(mockAnthropicError(status, "No.", { details: { error_code: code } }));
  expect(await errorOf(provider.answer(call()))).toMatchObject({ kind, status });
});

test("a refusal that quotes the request is no word about the operator's account", async () => {
  const { mock, provider, call } = await startAnthropic();
  const message = 'tools.0.name: "your credit balance is too low" should match the pattern';
  mock.respond(mockAnthropicError(400, message));
  expect(await errorOf(provider.answer(call()))).toMatchObject({ kind: "refused", message });
});

test.each([
  ["sk-ant-api03-AbC_d-9xyz", "sk-..."],
  ["r8_AbCdEf0123456789", "r8_..."],
  ["AIzaSyAbCdEf-0123", "AIza..."],
  ["0a1b2c3d-0123-4567-89ab-0123456789ab:0123456789abcdef0123456789abcdef", "..."],
])("a refusal shows the caller none of the operator's keys: %s", async (key, shown) => {
  const { mock, provider, call } = await startAnthropic();
  mock.respond(mockAnthropicError(400, `The key ${key} is not for this.`));
  const { message } = (await errorOf(provider.answer(call()))) as Error;
  expect(message).toBe(`The key ${shown} is not for this.`);
});

test("the provider's refusal of a field of the request reaches the caller in its words", async () => {
  const { provider, call } = await startAnthropic();
  const headers = { "anthropic-version": "2026-10-21" };
  expect(await errorOf(provider.answer(call({ ...question, temperature: 0 }, { headers })))).toMatchObject({
    kind: "refused",
    status: 400,
    message: "temperature: Extra inputs are not permitted",
  });
});

test.each([
  ["overloaded_error", "busy"],
  ["api_error", "unavailable"],
  ["permission_error", "misconfigured"],
  ["constructor", "unavailable"],
])("an error with status 200 is one all the same: %s", async (type, kind) => {
  const { mock, provider, call, count } = await startAnthropic();
  mock.always({ body: mockErrorEvent(type, "No.") });
  expect(await errorOf(provider.answer(call()))).toMatchObject({ kind });
  expect(await errorOf(count(call({ model: "claude-mock", messages: [] })))).toMatchObject({ kind });
});

test.each([
  ["HTML of a proxy", 502, "<html><h1>Bad Gateway</h1></html>", "unavailable"],
  ["HTML of a proxy before the provider", 413, "<html>Too large</html>", "refused"],
  ["an empty body", 529, "", "busy"],
  ["half of a body", 400, '{"type": "error", "error": {"mess', "refused"],
  ["a redirect", 307, "", "misconfigured"],
])("%s (status %i) has the kind of its status", async (_, status, body, kind) => {
  const { mock, provider, call } = await startAnthropic();
  mock.respond({ status, body, headers: { location: `${mock.url}/elsewhere` } });
  const failure = await errorOf(provider.answer(call()));
  expect(failure).toMatchObject({ kind, status });
  expect((failure as Error).message).not.toContain("<");
  expect(mock.requests).toHaveLength(1);
});
