import { describe, expect, test } from "vitest";
import { startReplicate } from "../support/hosted-setup.ts";
import { mockPng } from "../support/mock-openai-media.ts";
import { replicateError } from "../support/mock-replicate.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const fox = { prompt: "a fox" };

describe("a submission", () => {
  test.each([
    ["a key that is not accepted", replicateError(401, "Unauthenticated"), { kind: "misconfigured" }],
    ["no credit", replicateError(402, "Monthly spend limit reached"), { kind: "misconfigured" }],
    ["no such model", replicateError(404, "not found"), { kind: "misconfigured" }],
    [
      "no such version",
      replicateError(422, "The specified version does not exist", { title: "Invalid version or not permitted" }),
      { kind: "misconfigured" },
    ],
    [
      "a value that the model does not take",
      replicateError(422, "- input.duration: must be one of 4, 6, 8\n", {
        title: "Input validation failed",
        invalid_fields: [{ type: "enum", field: "input.duration", description: "must be one of 4, 6, 8" }],
      }),
      { kind: "refused", param: "input.duration", message: "must be one of 4, 6, 8" },
    ],
    [
      "a field that is missing",
      replicateError(422, "- input: prompt is required\n", {
        invalid_fields: [{ type: "required", field: "input", description: "prompt is required" }],
      }),
      { kind: "refused", param: "input.prompt", message: "prompt is required" },
    ],
    [
      "too many, with Retry-After",
      { ...replicateError(429, "Request was throttled."), headers: { "retry-after": "7" } },
      { kind: "busy", retryAfterMs: 7_000 },
    ],
    [
      "too many, with the wait in the text",
      replicateError(429, "Request was throttled. Your rate limit resets in ~30s."),
      { kind: "busy", retryAfterMs: 30_000 },
    ],
    [
      "too many, with the wait in a field",
      replicateError(429, "Request was throttled.", { retry_after: 9 }),
      { kind: "busy", retryAfterMs: 9_000 },
    ],
    ["down", replicateError(500, "oops"), { kind: "unavailable" }],
    ["a connection that breaks", { cutAfter: -1 }, { kind: "unavailable" }],
    ["no JSON", { body: "<html>" }, { kind: "unavailable" }],
    ["an id that is a path", { body: { id: "../models", status: "starting" } }, { kind: "unavailable" }],
  ])("%s: said once, and nothing is sent again", async (_, answer, failure) => {
    const { mock, provider, remembered, call } = await startReplicate();
    mock.respond(answer);
    expect(await errorOf(provider.generate(call("video", fox)))).toMatchObject(failure);
    expect([mock.requests.length, remembered]).toEqual([1, []]);
  });

  test("a field of the images route has the caller's name", async () => {
    const { mock, provider, call } = await startReplicate();
    const invalid = (field: string) =>
      replicateError(422, "no", { invalid_fields: [{ type: "x", field: `input.${field}`, description: "no" }] });
    mock.respond(invalid("num_outputs"), invalid("aspect_ratio"));
    const params = [];
    for (let i = 0; i < 2; i++) params.push(await errorOf(provider.generate(call("images", { ...fox, n: 4 }))));
    expect(params).toMatchObject([{ param: "n" }, { param: "aspect_ratio" }]);
  });
});

describe("a prediction that does not succeed", () => {
  test.each([
    ["The input or output was flagged as sensitive. Please try again with different inputs. (E005) (x)", "refused"],
    ["NSFW content detected. Try running it again, or try a different prompt.", "refused"],
    ["E1001: model ran out of memory", "refused"],
    ["ValueError: prompt is too long", "refused"],
    ["Failed to download https://a.example/b.png", "refused"],
    ["Service is currently unavailable due to high demand. Please try again later. (E003)", "busy"],
    ["Prediction interrupted; please retry (code: PA)", "unavailable"],
    ["Director: unexpected error handling prediction (E8765)", "unavailable"],
    ["Service is temporarily unavailable. Please try again later. (E004)", "unavailable"],
    ["CUDA error: an illegal memory access", "unavailable"],
    ["KeyError: 'x'", "unavailable"],
    [null, "unavailable"],
  ])("failed, %j: %s", async (error, kind) => {
    const { mock, provider, stored, call } = await startReplicate();
    mock.respond({ states: ["failed"], output: null, error });
    const failure = await errorOf(provider.generate(call("images", fox)));
    expect(failure).toMatchObject({ kind });
    expect((failure as { message: string }).message).toContain(error ?? "failed");
    expect(stored).toEqual([]);
  });

  test.each(["canceled", "aborted"])("%s by somebody else is no fault of the caller's", async (state) => {
    const { mock, provider, call } = await startReplicate();
    mock.respond({ states: [state], output: null, error: "invalid" });
    expect(await errorOf(provider.generate(call("video", fox)))).toMatchObject({ kind: "unavailable" });
  });

  test("a signed link in its text is shown without the signature", async () => {
    const { mock, provider, call } = await startReplicate();
    mock.respond({ states: ["failed"], error: "Failed to load https://a.example/b.png?X-Signature=secret: 403" });
    expect(await errorOf(provider.generate(call("video", fox)))).toMatchObject({
      kind: "refused",
      message: "Failed to load https://a.example/b.png 403",
    });
  });

  test.each([
    ["nothing", null],
    ["no file", { seed: 3 }],
    ["what is nested too deep", JSON.parse(`${"[".repeat(40)}${"]".repeat(40)}`)],
  ])("an output with %s is none", async (_, output) => {
    const { mock, provider, call } = await startReplicate();
    mock.respond({ states: ["succeeded"], output });
    expect(await errorOf(provider.generate(call("video", fox)))).toMatchObject({ kind: "unavailable" });
  });
});

describe("polling and downloading", () => {
  test("a failed poll does not fail the prediction", async () => {
    const { mock, clock, provider, call } = await startReplicate();
    mock.respond(
      { states: ["starting", "succeeded"] },
      replicateError(500, "oops"),
      replicateError(429, "Request was throttled. Your rate limit resets in ~20s."),
      { cutAfter: -1 },
    );
    const made = provider.generate(call("images", fox));
    await clock.pass(2_000, 3_000, 20_000, 6_750);
    expect((await made).usage).toEqual({ image: 1 });
    expect(mock.requests).toHaveLength(6);
  });

  test("a failed download is repeated; a file that cannot be fetched is not counted", async () => {
    const { mock, clock, provider, stored, call } = await startReplicate();
    const gone = { status: 404, body: "gone" };
    mock.respond({ states: ["succeeded"] }, { events: ["half", "rest"], cutAfter: 1 }, {}, gone, gone, gone);
    const made = provider.generate(call("images", { ...fox, n: 2 }));
    await clock.pass(2_000, 2_000, 2_000);
    expect((await made).usage).toEqual({ image: 1 });
    expect(stored).toEqual([{ bytes: mockPng, about: {} }]);
  });

  test("a video that cannot be fetched fails the call, and nothing is counted", async () => {
    const { mock, clock, provider, stored, call } = await startReplicate();
    const text = { headers: { "content-type": "text/html" }, body: "<html>" };
    mock.respond({ states: ["succeeded"], output: "0.mp4" }, text, text, text);
    const failure = errorOf(provider.generate(call("video", { ...fox, duration: 4 })));
    await clock.pass(2_000, 2_000);
    expect(await failure).toMatchObject({ kind: "unavailable" });
    expect(stored).toEqual([]);
  });

  test("private addresses in an output are not fetched", async () => {
    const { mock, clock, provider, call } = await startReplicate();
    mock.respond({ states: ["succeeded"], output: ["http://127.0.0.1:9/a.png"] });
    const failure = errorOf(provider.generate(call("images", fox)));
    await clock.pass(2_000, 2_000);
    expect(await failure).toMatchObject({ kind: "unavailable", message: expect.stringContaining("public") as unknown });
  });

  test("a file inside the answer is stored", async () => {
    const { mock, provider, stored, call } = await startReplicate();
    mock.respond({ states: ["succeeded"], output: [`data:image/png;base64,${mockPng.toString("base64")}`] });
    expect((await provider.generate(call("images", fox))).usage).toEqual({ image: 1 });
    expect(stored[0]?.bytes.equals(mockPng)).toBe(true);
  });
});
