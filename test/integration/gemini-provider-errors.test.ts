import { describe, expect, test } from "vitest";
import { createGemini } from "../../workers/providers/gemini/index.ts";
import { operatorKey, startGemini } from "../support/gemini-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";
import {
  mockBadKey,
  mockErrorInfo,
  mockGeminiError,
  mockGeminiProblem,
  mockRetryInfo,
} from "../support/mock-gemini.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const quota = "You exceeded your current quota, please check your plan and billing details.";

describe("an error has its kind", () => {
  test.each([
    ["a request that is not understood", mockGeminiError(400, 'Unknown name "x"'), "refused", 400],
    [
      "a key that is none",
      mockGeminiError(400, "API key not valid. Please pass a valid API key."),
      "misconfigured",
      400,
    ],
    [
      "a key that is none, in other words",
      mockGeminiError(400, "Bad credentials.", { details: [mockErrorInfo("API_KEY_INVALID")] }),
      "misconfigured",
      400,
    ],
    [
      "a place that is not served",
      mockGeminiError(400, "User location is not supported for the API use.", { status: "FAILED_PRECONDITION" }),
      "misconfigured",
      400,
    ],
    ["a key that is not known", mockGeminiError(401, "Request had invalid credentials."), "misconfigured", 401],
    ["a key without the right", mockGeminiError(403, "Your API key was reported as leaked."), "misconfigured", 403],
    ["a model that is not there", mockGeminiError(404, "models/x is not found for v1beta"), "misconfigured", 404],
    ["a failure of theirs", mockGeminiError(500, "An internal error has occurred."), "unavailable", 500],
    ["too much load", mockGeminiError(503, "The model is overloaded."), "unavailable", 503],
    ["too much time", mockGeminiError(504, "Deadline expired before operation could complete."), "timeout", 504],
    ["HTML of a proxy", { status: 502, body: "<html>" }, "unavailable", 502],
  ])("%s", async (_, answer, kind, status) => {
    const { mock, provider, text } = await startGemini();
    mock.respond(answer);
    const failure = await errorOf(provider.answer(text()));
    expect(failure).toMatchObject({ name: "UpstreamFailure", kind, status });
  });

  test("also inside a list, as some servers send it", async () => {
    const { mock, provider, text } = await startGemini();
    const details = [mockRetryInfo("17s")];
    const { error } = mockGeminiProblem(429, quota, { details });
    mock.respond({ status: 429, body: [{ error }] });
    expect(await errorOf(provider.answer(text()))).toMatchObject({ kind: "busy", retryAfterMs: 17_000 });
  });

  test("the message of a refused request goes to the caller", async () => {
    const { provider, text } = await startGemini();
    expect(await errorOf(provider.answer(text({ nonsense: 1 })))).toMatchObject({
      kind: "refused",
      message: 'Invalid JSON payload received. Unknown name "nonsense": Cannot find field.',
    });
  });

  test("the mock's refusal of a key is understood", async () => {
    const { target, text } = await startGemini();
    const provider = createGemini({ ...target, apiKey: mockBadKey }, { clock: createManualClock() });
    expect(await errorOf(provider.answer(text()))).toMatchObject({ kind: "misconfigured", status: 400 });
    await provider.close();
  });
});

describe("a busy provider gets the cooldown that it requests", () => {
  test.each([
    ["17s", 17_000],
    ["0.5s", 500],
    ["2.123456789s", 2_123],
    ["0s", 0],
  ])("%s", async (retryDelay, retryAfterMs) => {
    const { mock, provider, text } = await startGemini();
    const details = [{ "@type": "type.googleapis.com/google.rpc.QuotaFailure" }, mockRetryInfo(retryDelay)];
    mock.respond(mockGeminiError(429, quota, { details }));
    expect(await errorOf(provider.answer(text()))).toMatchObject({ kind: "busy", status: 429, retryAfterMs });
    mock.respond({ events: [mockGeminiProblem(429, quota, { details })] });
    expect(await errorOf(Array.fromAsync(provider.stream(text())))).toMatchObject({ kind: "busy", retryAfterMs });
  });

  test.each([
    ["no word of it", undefined],
    ["no details that are a list", { retryDelay: "9s" }],
    ["nothing in them", [null, 7, "9s"]],
    ["another unit", [mockRetryInfo("9m")]],
    ["a number", [{ retryDelay: 9 }]],
    ["a negative time", [mockRetryInfo("-9s")]],
    ["no time", [mockRetryInfo("s")]],
  ])("a second where there is %s", async (_, details) => {
    const { mock, provider, text } = await startGemini();
    const body = { error: { code: 429, message: quota, status: "RESOURCE_EXHAUSTED", details } };
    mock.respond({ status: 429, body });
    expect(await errorOf(provider.answer(text()))).toMatchObject({ kind: "busy", retryAfterMs: 1_000 });
  });

  test("a header takes precedence, and a 503 with a retry time is busy", async () => {
    const { mock, provider, text } = await startGemini();
    const details = [mockRetryInfo("17s")];
    mock.respond(
      mockGeminiError(429, quota, { details, headers: { "retry-after": "3" } }),
      mockGeminiError(503, "overloaded", { details }),
    );
    expect(await errorOf(provider.answer(text()))).toMatchObject({ kind: "busy", retryAfterMs: 3_000 });
    expect(await errorOf(provider.answer(text()))).toMatchObject({ kind: "busy", retryAfterMs: 17_000 });
  });
});

describe("the key is not shown", () => {
  test.each([
    `API key ${operatorKey} may not do this.`,
    `Consumer 'api_key:${operatorKey}' has no right.`,
    `See https://host/v1beta/models?key=${operatorKey}&alt=sse`,
    "Use of AQ.Ab8RN6Jx0-_abcdefghijklmnop is not allowed.",
  ])("in a message for the caller: %s", async (message) => {
    const { mock, provider, text, media } = await startGemini();
    mock.always(mockGeminiError(400, message));
    const failures = [
      await errorOf(provider.answer(text())),
      await errorOf(Array.fromAsync(provider.stream(text()))),
      await errorOf(provider.generate(media("images", { prompt: "a fox" }))),
      await errorOf(provider.generate(media("video", { prompt: "a fox", duration: 8 }))),
    ];
    mock.always({ events: [mockGeminiProblem(400, message)] });
    failures.push(await errorOf(Array.fromAsync(provider.stream(text()))));
    for (const failure of failures) {
      expect(failure).toMatchObject({ kind: "refused" });
      expect(String((failure as Error).message)).not.toMatch(/Operator_|Ab8RN6Jx0/);
    }
  });

  test("nor in a requested address", async () => {
    const { mock, clock, provider, text, media } = await startGemini();
    await provider.answer(text());
    await provider.count?.(text());
    await provider.embed({ ...text(), body: { input: "Hi" } });
    const made = provider.generate(media("video", { prompt: "a fox", duration: 8 }));
    await clock.pass(2_000);
    await made;
    expect(mock.requests.map(({ path }) => path).join(" ")).not.toContain("AIza");
    expect(mock.requests.map(({ headers }) => headers["x-goog-api-key"])).toEqual(mock.requests.map(() => operatorKey));
  });
});
