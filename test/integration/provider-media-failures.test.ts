import { describe, expect, test } from "vitest";
import type { JsonObject } from "#json";
import type { Task } from "../../shared/catalog/index.ts";
import { uploadsOf } from "../support/media-calls-setup.ts";
import { falError } from "../support/mock-fal.ts";
import { mockError } from "../support/mock-openai.ts";
import { mockPng } from "../support/mock-openai-media.ts";
import { replicateError } from "../support/mock-replicate.ts";
import { type ProviderName, startProvider } from "../support/provider-setup.ts";
import { errorOf } from "../support/upstreams-setup.ts";

/** The usual input of a task. */
const usual: Readonly<Partial<Record<Task, JsonObject>>> = {
  images: { prompt: "a fox" },
  video: { prompt: "a fox", duration: 8 },
  speech: { text: "Hello", voice: "alloy" },
  transcription: { file: "upl_1" },
};

/** The failure of a call whose provider answers so; nothing is stored. */
async function failureOf(name: ProviderName, task: Task, answers: readonly object[], waits: readonly number[] = []) {
  const { mock, clock, provider, stored, remembered, call } = await startProvider(name);
  mock.respond(...answers);
  const recording = { id: "upl_1", param: "input.file", mime: "audio/wav", content: Buffer.from("noise") };
  const uploads = uploadsOf(task === "transcription" ? [recording] : []);
  const failing = errorOf(provider.generate(call(task, usual[task] ?? {}, { uploads })));
  await clock.pass(...waits);
  const failure = (await failing) as Error;
  expect(failure.name).toBe("UpstreamFailure");
  expect(stored).toEqual([]);
  return { failure, requests: mock.requests.length, remembered };
}

type Failure = string | Readonly<Record<string, unknown>>;
const fields = (failure: Failure) => (typeof failure === "string" ? { kind: failure } : failure);

const moderated = "Your request was rejected by the safety system.";
const moderation = { type: "image_generation_user_error", code: "moderation_blocked" };
const mp3 = { headers: { "content-type": "audio/mpeg" }, done: false };
const inline = (mimeType: string, data: string) => ({ parts: [{ inlineData: { mimeType, data } }] });
const draft = { parts: [{ inlineData: { mimeType: "image/png", data: mockPng.toString("base64") }, thought: true }] };
const detail = (status: number, text: string, headers = {}) => ({ status, headers, body: { detail: text } });
const refused = (message: string, param?: string) => ({ kind: "refused", message, ...(param && { param }) });
const invalid = (type: string, field: string, description: string) => ({
  invalid_fields: [{ type, field, description }],
});
const busy = (seconds: number) => ({ kind: "busy", retryAfterMs: seconds * 1_000 });

describe("an answer to the first request", () => {
  test.each<readonly [ProviderName, Task, what: string, answer: object, Failure]>([
    ["openai", "images", "no data", { body: { created: 1 } }, "unavailable"],
    ["openai", "images", "an empty list", { body: { data: [] } }, "unavailable"],
    [
      "openai",
      "images",
      "no images",
      { body: { data: [{}, null, 7, { b64_json: "" }, { url: null }] } },
      "unavailable",
    ],
    ["openai", "images", "no JSON", { body: "<html>" }, "unavailable"],
    ["openai", "images", "half of it", { body: '{"data": [{"b64_json": "AAAA"' }, "unavailable"],
    ["openai", "images", "broken base64", { body: '{"data": [{"b64_json": "AA\\' }, "unavailable"],
    ["openai", "images", "an error", { body: { error: { message: "oops", type: "server_error" } } }, "unavailable"],
    ["openai", "images", "a moderated prompt", mockError(400, moderated, moderation), refused(moderated)],
    [
      "openai",
      "images",
      "the same, with status 200",
      { body: mockError(400, moderated, moderation).body },
      refused(moderated),
    ],
    ["openai", "images", "a field", mockError(400, "No.", { param: "size", code: "x" }), refused("No.", "size")],
    ["openai", "images", "full", mockError(429, "Slow down", { headers: { "retry-after": "7" } }), busy(7)],
    ["openai", "images", "no money", mockError(429, "No money", { code: "insufficient_quota" }), "misconfigured"],
    ["openai", "images", "no right", mockError(403, "Your organization must be verified"), "misconfigured"],
    ["openai", "speech", "nothing at all", { ...mp3, body: "" }, "unavailable"],
    ["openai", "speech", "JSON", { body: { audio: "AAAA" } }, "unavailable"],
    ["openai", "speech", "an error", { body: mockError(400, "no").body }, "refused"],
    [
      "openai",
      "speech",
      "a problem",
      { body: "{}", headers: { "content-type": "application/problem+json" } },
      "unavailable",
    ],
    ["openai", "speech", "a page", { body: "<html>", headers: { "content-type": "text/html" } }, "unavailable"],
    ["openai", "speech", "half of the sound", { ...mp3, events: ["one", "two"], cutAfter: 1 }, "unavailable"],
    [
      "openai",
      "speech",
      "an unknown compression",
      { body: "AAAA", headers: { "content-type": "audio/mpeg", "content-encoding": "zip" } },
      "unavailable",
    ],
    ["openai", "speech", "a field", mockError(400, "no", { param: "input" }), refused("no", "input.text")],
    ["openai", "speech", "an unchanged field", mockError(400, "no", { param: "voice" }), refused("no", "input.voice")],
    ["openai", "transcription", "no text", { body: { usage: { type: "duration", seconds: 1 } } }, "unavailable"],
    ["openai", "transcription", "no JSON", { body: "Hello", headers: { "content-type": "text/plain" } }, "unavailable"],
    ["openai", "transcription", "an error", { body: { error: { message: "x", type: "rate_limit_error" } } }, "busy"],
    ["openai", "transcription", "no length", { body: { text: "Hm." } }, { kind: "refused", param: "input.file" }],
    ["openai", "video", "moderated", mockError(400, "moderated", { code: "moderation_blocked" }), "refused"],
    ["openai", "video", "a field", mockError(400, "No.", { param: "seconds" }), refused("No.", "input.duration")],
    ["openai", "video", "an unchanged field", mockError(400, "No.", { param: "size" }), refused("No.", "input.size")],
    ["openai", "video", "full", mockError(429, "Slow down", { headers: { "retry-after": "5" } }), busy(5)],
    ["openai", "video", "no id", { body: { status: "queued" } }, "unavailable"],
    [
      "gemini",
      "images",
      "a blocked prompt",
      { blockReason: "PROHIBITED_CONTENT" },
      refused("The prompt was blocked: PROHIBITED_CONTENT."),
    ],
    [
      "gemini",
      "images",
      "a withheld image",
      { parts: [], finishReason: "IMAGE_SAFETY" },
      refused("The model made no image: IMAGE_SAFETY."),
    ],
    [
      "gemini",
      "images",
      "another's work",
      { parts: [], finishReason: "IMAGE_RECITATION" },
      refused("The model made no image: IMAGE_RECITATION."),
    ],
    [
      "gemini",
      "images",
      "none made",
      { text: "No.", parts: [{ text: "I cannot." }], finishReason: "NO_IMAGE" },
      refused("The model made no image: NO_IMAGE. I cannot."),
    ],
    [
      "gemini",
      "images",
      "words",
      { parts: [{ text: "I can " }, { text: "not." }] },
      refused("The model made no image. I can not."),
    ],
    [
      "gemini",
      "images",
      "a break",
      { parts: [], finishReason: "IMAGE_OTHER" },
      { kind: "unavailable", message: "an answer without image (IMAGE_OTHER)" },
    ],
    ["gemini", "images", "a draft", draft, { kind: "unavailable", message: "an answer without image (STOP)" }],
    ["gemini", "images", "sound", inline("audio/wav", "AAAA"), "unavailable"],
    ["gemini", "images", "an empty image", inline("image/png", ""), "unavailable"],
    [
      "gemini",
      "images",
      "nonsense",
      { parts: [null, 7, {}, { inlineData: "x" }, { inlineData: { data: 7 } }] },
      "unavailable",
    ],
    ["gemini", "speech", "no rate", inline("audio/L16", "AAAA"), "unavailable"],
    ["gemini", "speech", "another form", inline("audio/ogg;rate=24000", "AAAA"), "unavailable"],
    ["gemini", "speech", "an image", inline("image/png", "AAAA"), "unavailable"],
    ["gemini", "speech", "a block", { blockReason: "OTHER" }, "refused"],
    ["gemini", "video", "no id", { body: { status: "in_progress" } }, "unavailable"],
    ["fal", "video", "no key", detail(401, "No user found for Key ID and Secret"), "misconfigured"],
    ["fal", "video", "no money", detail(403, "User is locked. Reason: Exhausted balance."), "misconfigured"],
    ["fal", "video", "no such endpoint", detail(404, "Application 'model' not found"), "misconfigured"],
    [
      "fal",
      "video",
      "a field that the model does not take",
      falError(422, "less_than_equal", "At most 15", { loc: ["body", "shots", 1, "duration"] }),
      refused("At most 15", "input.shots[1].duration"),
    ],
    ["fal", "images", "a field", falError(422, "x", "No.", { loc: ["body", "seed"] }), refused("No.", "seed")],
    [
      "fal",
      "video",
      "moderated",
      falError(422, "content_policy_violation", "Flagged.", { loc: ["body", "prompt"] }),
      refused("Flagged.", "input.prompt"),
    ],
    ["fal", "video", "of a type that is unknown", falError(422, "brand_new", "No."), refused("No.")],
    ["fal", "video", "malformed", { status: 400, body: { detail: "Bad", error_type: "bad_request" } }, refused("Bad")],
    [
      "fal",
      "video",
      "worth another try by the header",
      falError(422, "brand_new", "No.", { headers: { "x-fal-retryable": "true" } }),
      "unavailable",
    ],
    [
      "fal",
      "video",
      "the same by the header's newer name",
      falError(400, "brand_new", "No.", { headers: { "x-fal-needs-retry": "1" } }),
      "unavailable",
    ],
    ["fal", "video", "a service behind it", falError(400, "downstream_service_error", "oops"), "unavailable"],
    ["fal", "video", "too slow", falError(504, "generation_timeout", "slow"), "timeout"],
    [
      "fal",
      "video",
      "without a runner",
      { status: 400, body: { detail: "no", error_type: "runner_scheduling_failure" } },
      "unavailable",
    ],
    ["fal", "video", "too many", detail(429, "Too many", { "x-ratelimit-reset": "12" }), busy(12)],
    ["fal", "video", "too many at once", falError(400, "concurrent_requests_limit", "Too many"), "busy"],
    ["fal", "video", "down", detail(500, "oops"), "unavailable"],
    ["fal", "video", "cut off", { cutAfter: -1 }, "unavailable"],
    ["fal", "video", "an id that is a path", { body: { request_id: "../../x", status: "IN_QUEUE" } }, "unavailable"],
    ["replicate", "video", "a key that is not accepted", replicateError(401, "Unauthenticated"), "misconfigured"],
    ["replicate", "video", "no credit", replicateError(402, "Monthly spend limit reached"), "misconfigured"],
    ["replicate", "video", "no such model", replicateError(404, "not found"), "misconfigured"],
    [
      "replicate",
      "video",
      "no such version",
      replicateError(422, "It does not exist", { title: "Invalid version or not permitted" }),
      "misconfigured",
    ],
    [
      "replicate",
      "video",
      "a value that the model does not take",
      replicateError(422, "- input.duration: no\n", invalid("enum", "input.duration", "must be one of 4, 6, 8")),
      refused("must be one of 4, 6, 8", "input.duration"),
    ],
    [
      "replicate",
      "video",
      "a field that is missing",
      replicateError(422, "- input: no\n", invalid("required", "input", "prompt is required")),
      refused("prompt is required", "input.prompt"),
    ],
    [
      "replicate",
      "images",
      "a field",
      replicateError(422, "no", invalid("x", "input.aspect_ratio", "No.")),
      refused("No.", "aspect_ratio"),
    ],
    [
      "replicate",
      "video",
      "too many, with Retry-After",
      { ...replicateError(429, "Request was throttled."), headers: { "retry-after": "7" } },
      busy(7),
    ],
    ["replicate", "video", "a wait in the text", replicateError(429, "Your rate limit resets in ~30s."), busy(30)],
    ["replicate", "video", "a wait in a field", replicateError(429, "Throttled.", { retry_after: 9 }), busy(9)],
    ["replicate", "video", "down", replicateError(500, "oops"), "unavailable"],
    ["replicate", "video", "a connection that breaks", { cutAfter: -1 }, "unavailable"],
    ["replicate", "video", "no JSON", { body: "<html>" }, "unavailable"],
    ["replicate", "video", "an id that is a path", { body: { id: "../models", status: "starting" } }, "unavailable"],
  ])("%s, %s: %s fails the call, which is not sent again", async (name, task, _, answer, failure) => {
    const failed = await failureOf(name, task, [answer]);
    expect(failed).toMatchObject({ failure: fields(failure), requests: 1, remembered: [] });
  });
});

const said = (content: object) => ({ steps: [{ type: "model_output", content: [content] }] });
const wrong = (code: number, message: string) => ({ steps: [{ type: "model_output", error: { code, message } }] });
const broken = { message: "It broke.", code: "internal" };
const theirs = { steps: [{ type: "user_input", content: [{ type: "video", uri: "https://a/b" }] }] };
const omni = (status: string, outcome: object) => ({ states: [status], outcome });
const failedJob = (error: object | null) => ({ body: { id: "video_1", status: "failed", error } });
const prediction = (error: string | null, state = "failed") => ({ states: ["starting", state], output: null, error });
const output = (made: unknown) => ({ output: made });
const flagged = falError(422, "content_policy_violation", "Flagged.", { loc: ["body", "prompt"] });
const deep: unknown = JSON.parse(`${"[".repeat(40)}${"]".repeat(40)}`);

describe("a job that fails", () => {
  test.each<readonly [ProviderName, script: object, Failure]>([
    ["openai", failedJob({ code: "moderation_blocked", message: "Blocked." }), refused("Blocked.")],
    [
      "openai",
      failedJob({ type: "invalid_request_error", message: "No.", param: "size" }),
      refused("No.", "input.size"),
    ],
    [
      "openai",
      failedJob({ type: "invalid_request_error", message: "No.", param: "seconds" }),
      { param: "input.duration" },
    ],
    [
      "openai",
      failedJob({ code: "rate_limit_exceeded", message: "Full." }),
      { kind: "busy", message: "status 429: Full." },
    ],
    [
      "openai",
      failedJob({ code: "server_error", message: "It broke." }),
      { kind: "unavailable", message: "status 500: It broke." },
    ],
    ["openai", failedJob(null), { kind: "unavailable", message: "status 500" }],
    ["gemini", omni("completed", said({ type: "text", text: "No." })), refused("The model made no video. No.")],
    ["gemini", omni("completed", { steps: [] }), "unavailable"],
    ["gemini", omni("completed", {}), "unavailable"],
    ["gemini", omni("completed", theirs), "unavailable"],
    ["gemini", omni("failed", { errors: [{ code: "SAFETY", message: "Blocked." }] }), refused("Blocked.")],
    ["gemini", omni("failed", { finish_reason: "PROHIBITED_CONTENT" }), refused("The video was withheld for safety.")],
    ["gemini", omni("failed", { error: broken }), { kind: "unavailable", message: "status 500: It broke." }],
    ["gemini", omni("failed", { errors: [null, broken] }), { kind: "unavailable", message: "status 500: It broke." }],
    ["gemini", omni("failed", wrong(3, "Bad image.")), refused("Bad image.")],
    ["gemini", omni("failed", wrong(8, "Full.")), { kind: "busy", message: "status 429: Full." }],
    ["gemini", omni("failed", wrong(9, "Billing.")), "misconfigured"],
    ["gemini", omni("failed", {}), "unavailable"],
    ["gemini", omni("incomplete", {}), "unavailable"],
    ["gemini", omni("cancelled", {}), "unavailable"],
    ["gemini", omni("budget_exceeded", {}), "unavailable"],
    ["gemini", omni("requires_action", {}), "unavailable"],
    ["fal", { result: flagged }, "refused"],
    ["fal", { result: falError(422, "file_download_error", "Cannot load.") }, "refused"],
    ["fal", { failed: { error: "Request timed out", error_type: "request_timeout" } }, "timeout"],
    ["fal", { failed: { error: "Bad request", error_type: "bad_request" } }, "refused"],
    ["fal", { failed: { error: "gone", error_type: "runner_disconnected" } }, "unavailable"],
    ["fal", { failed: { error: "cancelled", error_type: "client_cancelled" } }, "unavailable"],
    ["fal", { failed: { error: "oops" } }, "unavailable"],
    ["replicate", prediction("The input was flagged as sensitive. (E005) (x)"), "refused"],
    ["replicate", prediction("NSFW content detected. Try running it again."), "refused"],
    ["replicate", prediction("E1001: model ran out of memory"), refused("E1001: model ran out of memory")],
    ["replicate", prediction("ValueError: prompt is too long"), "refused"],
    [
      "replicate",
      prediction("Failed to load https://a.example/b.png?X-Signature=secret: 403"),
      refused("Failed to load https://a.example/b.png 403"),
    ],
    ["replicate", prediction("Service is unavailable due to high demand. (E003)"), "busy"],
    ["replicate", prediction("Prediction interrupted; please retry (code: PA)"), "unavailable"],
    ["replicate", prediction("Director: unexpected error handling prediction (E8765)"), "unavailable"],
    ["replicate", prediction("Service is temporarily unavailable. (E004)"), "unavailable"],
    ["replicate", prediction("CUDA error: an illegal memory access"), "unavailable"],
    [
      "replicate",
      prediction("KeyError: 'x'"),
      { kind: "unavailable", message: expect.stringContaining("KeyError: 'x'") as string },
    ],
    ["replicate", prediction(null), { kind: "unavailable", message: expect.stringContaining("failed") as string }],
    ["replicate", prediction("invalid", "canceled"), "unavailable"],
    ["replicate", prediction("invalid", "aborted"), "unavailable"],
    ["replicate", output(null), "unavailable"],
    ["replicate", output({ seed: 3 }), "unavailable"],
    ["replicate", output(deep), "unavailable"],
  ])("%s: %j", async (name, script, expected) => {
    // A failed video of OpenAI is scripted as the answer to the poll.
    const answers = name === "openai" ? [{}, script] : [script];
    expect((await failureOf(name, "video", answers, [2_000])).failure).toMatchObject(fields(expected));
  });
});
