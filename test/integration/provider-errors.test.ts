import { describe, expect, test } from "vitest";
import { mockAnthropicError, mockErrorEvent } from "../support/mock-anthropic.ts";
import {
  mockBadKey,
  mockErrorInfo,
  mockGeminiError,
  mockGeminiProblem,
  mockRetryInfo,
} from "../support/mock-gemini.ts";
import { mockError } from "../support/mock-openai.ts";
import type { ProviderAnswer } from "../support/mock-provider.ts";
import { type ProviderName, startAnthropic, startGemini, startProvider } from "../support/provider-setup.ts";
import { errorOf } from "../support/upstreams-setup.ts";

/** The failure of a call that a provider answers so, once. */
async function failureOf(name: ProviderName, answer: ProviderAnswer) {
  const { mock, ask } = await startProvider(name);
  mock.respond(answer);
  const failure = (await errorOf(ask("answer"))) as Error & { readonly retryAfterMs?: number };
  expect(failure.name).toBe("UpstreamFailure");
  expect(mock.requests).toHaveLength(1);
  return failure;
}

const secret = "the provider's own words";

test.each([
  [400, "refused"],
  [401, "misconfigured"],
  [402, "misconfigured"],
  [403, "misconfigured"],
  [404, "misconfigured"],
  [408, "unavailable"],
  [409, "unavailable"],
  [413, "refused"],
  [415, "refused"],
  [422, "refused"],
  [429, "busy"],
  [500, "unavailable"],
  [504, "timeout"],
  [529, "busy"],
])("status %i is %s, of answers, streams and counts alike, and is not asked again", async (status, kind) => {
  const { mock, ask } = await startAnthropic();
  mock.always(mockAnthropicError(status, secret));
  for (const way of ["answer", "stream", "count"] as const)
    expect(await errorOf(ask(way))).toMatchObject({
      name: "UpstreamFailure",
      kind,
      status,
      message: kind === "refused" ? secret : `status ${status}: ${secret}`,
      ...(kind === "busy" && { retryAfterMs: 1_000 }),
    });
  expect(mock.requests).toHaveLength(3);
});

const google = (code: number, message: string, status?: string) =>
  mockGeminiError(code, message, status === undefined ? {} : { status });
const html = "<html><h1>Bad Gateway</h1></html>";

test.each<readonly [what: string, name: ProviderName, status: number, body: unknown, kind: string]>([
  ["HTML of a proxy", "openai", 502, html, "unavailable"],
  ["HTML of a proxy that refuses", "anthropic", 413, html, "refused"],
  ["an empty body", "openai", 400, "", "refused"],
  ["an empty body of an overloaded server", "anthropic", 529, "", "busy"],
  ["half of a JSON body", "openai", 500, '{"error": {"mess', "unavailable"],
  ["a bare text as error", "openai", 422, { error: "messages: too many" }, "refused"],
  ["an object that is the error", "openai", 400, { message: "messages: too many", param: null }, "refused"],
  ["Google's list around it", "openai", 400, [{ error: { code: 400, message: "too many" } }], "refused"],
  ["a bad key in Google's list", "openai", 400, [{ error: { message: "API key not valid. Please" } }], "misconfigured"],
  ["a content policy", "openai", 400, { error: { message: "No.", code: "content_policy_violation" } }, "refused"],
  ["a payment that is due", "openai", 402, { error: { message: "add credits" } }, "misconfigured"],
  ["a redirect", "openai", 302, "", "misconfigured"],
  ["a field that Google does not know", "gemini", 400, google(400, 'Unknown name "x"').body, "refused"],
  ["a key that is none", "gemini", 400, google(400, "API key not valid.").body, "misconfigured"],
  ["Google's list around an exhausted quota", "vertex", 429, [google(429, "Resource exhausted.").body], "busy"],
  ["a page of Google's front end", "vertex", 404, html, "misconfigured"],
  [
    "a key that is none, by its reason",
    "gemini",
    400,
    mockGeminiProblem(400, "Bad credentials.", { details: [mockErrorInfo("API_KEY_INVALID")] }),
    "misconfigured",
  ],
])("%s (%s, status %i) has its kind, and no text of a page", async (_, name, status, body, kind) => {
  const failure = await failureOf(name, { status, body, headers: { location: "/elsewhere" } });
  expect(failure).toMatchObject({ kind, status });
  expect(failure.message).not.toContain("<");
});

test("a place that is not served, or a policy of the project, is not told as an invalid key is", async () => {
  const failure = await failureOf("gemini", google(400, "User location is not supported.", "FAILED_PRECONDITION"));
  expect(failure).toMatchObject({ kind: "misconfigured", isForbidden: true });
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
  const details = code === undefined ? {} : { details: { error_code: code } };
  const failure = await failureOf("anthropic", mockAnthropicError(status, text, details));
  expect(failure).toMatchObject({ kind: "misconfigured", status });
  expect(failure.retryAfterMs).toBeUndefined();
});

const quoted = 'tools.0.name: "your credit balance is too low" should match the pattern';
test.each([
  [400, "refused", "image_dimensions_too_large", "No."],
  [429, "busy", "ramp_limit_exceeded", "No."],
  [500, "unavailable", "enforced_spend_limit_reached", "No."],
  [400, "refused", undefined, quoted],
])("other details, and quoted text, change nothing: %i is %s with %s", async (status, kind, code, text) => {
  const details = code === undefined ? {} : { details: { error_code: code } };
  expect(await failureOf("anthropic", mockAnthropicError(status, text, details))).toMatchObject({ kind, status });
});

const googleKey = "AIzaSyOperator_0123456789-abcdefghijklm";
test.each([
  ["The key sk-ant-api03-AbC_d-9xyz is bad.", "The key sk-... is bad."],
  ["Your organization org-Abc123456789 must be verified.", "Your organization org-... must be verified."],
  ["The key r8_AbCdEf0123456789 is bad.", "The key r8_... is bad."],
  ["0a1b2c3d-0123-4567-89ab-0123456789ab:0123456789abcdef0123456789abcdef", "..."],
  [`API key ${googleKey} may not do this.`, "API key AIza... may not do this."],
  [`Consumer 'api_key:${googleKey}' has no right.`, "Consumer 'api_key:AIza...' has no right."],
  [`See https://host/v1beta/models?key=${googleKey}&alt=sse`, "See https://host/v1beta/models?key=AIza...&alt=sse"],
  ["Key ABSK0123456789abcdef+/= or AKIA0123456789ABCDEF is bad.", "Key ABSK... or AKIA... is bad."],
  ["User arn:aws:iam::123456789012:user/x may not do this.", "User arn:... may not do this."],
  ["Use of AQ.Ab8RN6Jx0-_abcdefghijklmnop is not allowed.", "Use of AQ.... is not allowed."],
])("a refusal shows the caller none of the operator's keys: %s", async (message, shown) => {
  expect(await failureOf("gemini", mockGeminiError(400, message))).toMatchObject({ kind: "refused", message: shown });
  const { mock, readFailing } = await startGemini();
  mock.respond({ events: [mockGeminiProblem(400, message)] });
  expect((await readFailing()).failure).toMatchObject({ kind: "refused", message: shown });
});

test.each<readonly [ProviderName, object, object, string]>([
  [
    "anthropic",
    { temperature: 0 },
    { "anthropic-version": "2026-10-21" },
    "temperature: Extra inputs are not permitted",
  ],
  ["gemini", { x: 1 }, {}, 'Invalid JSON payload received. Unknown name "x": Cannot find field.'],
])("a refusal of %s reaches the caller in its words", async (name, body, headers, message) => {
  const { ask, text } = await startProvider(name);
  const asked = text({ ...body }, { headers: { ...headers } });
  expect(await errorOf(ask("answer", asked))).toMatchObject({ kind: "refused", status: 400, message });
});

test("Google's answer to a bad key is understood", async () => {
  const { ask } = await startGemini({ apiKey: mockBadKey });
  expect(await errorOf(ask("answer"))).toMatchObject({ kind: "misconfigured", status: 400 });
});

test.each([
  ["overloaded_error", "busy"],
  ["api_error", "unavailable"],
  ["permission_error", "misconfigured"],
  ["constructor", "unavailable"],
])("an error with status 200 is one all the same: %s", async (type, kind) => {
  const { mock, ask } = await startAnthropic();
  mock.always({ body: mockErrorEvent(type, "No.") });
  for (const way of ["answer", "count"] as const) expect(await errorOf(ask(way))).toMatchObject({ kind });
});

describe("a busy provider gets the cooldown that it requests", () => {
  const quota = "You exceeded your current quota, please check your plan and billing details.";
  const failing = { "@type": "type.googleapis.com/google.rpc.QuotaFailure" };

  test.each([
    [429, { "retry-after": "17" }, 17_000],
    [529, { "retry-after": "2" }, 2_000],
    [429, { "retry-after": "Thu, 01 Jan 2026 00:00:30 GMT" }, 30_000],
    [429, { "retry-after": "Wed, 31 Dec 2025 00:00:00 GMT" }, 0],
    [429, { "retry-after": "soon" }, 1_000],
    [429, { "retry-after-ms": "250", "retry-after": "1" }, 250],
    [503, { "retry-after": "4" }, 4_000],
  ])("status %i with %j: %i ms", async (status, headers, retryAfterMs) => {
    const answer = mockAnthropicError(status, "Later.", { headers });
    expect(await failureOf("anthropic", answer)).toMatchObject({ kind: "busy", retryAfterMs });
  });

  test.each<readonly [details: unknown, retryAfterMs: number]>([
    [[failing, mockRetryInfo("17s")], 17_000],
    [[failing, mockRetryInfo("0.5s")], 500],
    [[failing, mockRetryInfo("2.123456789s")], 2_123],
    [[failing, mockRetryInfo("0s")], 0],
    [undefined, 1_000],
    [{ retryDelay: "9s" }, 1_000],
    [[null, 7, "9s"], 1_000],
    [[mockRetryInfo("9m")], 1_000],
    [[{ retryDelay: 9 }], 1_000],
    [[mockRetryInfo("-9s")], 1_000],
    [[mockRetryInfo("s")], 1_000],
  ])("Google's details %j: %i ms", async (details, retryAfterMs) => {
    const body = { error: { code: 429, message: quota, status: "RESOURCE_EXHAUSTED", details } };
    expect(await failureOf("gemini", { status: 429, body })).toMatchObject({ kind: "busy", status: 429, retryAfterMs });
    const { mock, readFailing } = await startGemini();
    mock.respond({ events: [body] });
    expect((await readFailing()).failure).toMatchObject({ kind: "busy", retryAfterMs });
  });

  const details = [mockRetryInfo("17s")];
  test.each([
    ["a header takes precedence", mockGeminiError(429, quota, { details, headers: { "retry-after": "3" } }), 3_000],
    ["a 503 with a time is busy", mockGeminiError(503, "overloaded", { details }), 17_000],
    ["an error in a list", { status: 429, body: [mockGeminiProblem(429, quota, { details })] }, 17_000],
  ])("%s", async (_, answer, retryAfterMs) => {
    expect(await failureOf("gemini", answer)).toMatchObject({ kind: "busy", retryAfterMs });
  });
});

test.each([
  [mockError(400, "No.", { param: "input[0]" }), { kind: "refused", message: "No.", param: "input[0]" }],
  [mockError(429, "Slowly.", { headers: { "retry-after": "7" } }), { kind: "busy", retryAfterMs: 7_000 }],
  [{ body: { error: { message: "Slowly.", code: "rate_limit_exceeded" } } }, { kind: "busy" }],
  [mockError(404, "No such model."), { kind: "misconfigured" }],
])("an error in the place of a response, whole or streamed, is one: %j", async (answer, expected) => {
  expect(await failureOf("responses", answer)).toMatchObject(expected);
  const { mock, readFailing } = await startProvider("responses");
  mock.respond(answer);
  expect((await readFailing()).failure).toMatchObject(expected);
});
