import { expect, test } from "vitest";
import type { JsonObject } from "#json";
import type { Task } from "../../shared/catalog/index.ts";
import { createLogger } from "../../shared/platform/logger.ts";
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

const answers: Readonly<
  Partial<Record<`${ProviderName} ${Task}`, readonly (readonly [what: string, object, Failure])[]>>
> = {
  "openai images": [
    ["no data", { body: { created: 1 } }, "unavailable"],
    ["an empty list", { body: { data: [] } }, "unavailable"],
    ["no images", { body: { data: [{}, null, 7, { b64_json: "" }, { url: null }] } }, "unavailable"],
    ["no JSON", { body: "<html>" }, "unavailable"],
    ["half of it", { body: '{"data": [{"b64_json": "AAAA"' }, "unavailable"],
    ["broken base64", { body: '{"data": [{"b64_json": "AA\\' }, "unavailable"],
    ["an error", { body: { error: { message: "oops", type: "server_error" } } }, "unavailable"],
    ["a moderated prompt", mockError(400, moderated, moderation), refused(moderated)],
    ["the same, with status 200", { body: mockError(400, moderated, moderation).body }, refused(moderated)],
    ["a field", mockError(400, "No.", { param: "size", code: "x" }), refused("No.", "size")],
    ["full", mockError(429, "Slow down", { headers: { "retry-after": "7" } }), busy(7)],
  ],
  "openai speech": [
    ["nothing at all", { ...mp3, body: "" }, "unavailable"],
    ["JSON", { body: { audio: "AAAA" } }, "unavailable"],
    ["an error", { body: mockError(400, "no").body }, "refused"],
    ["a problem", { body: "{}", headers: { "content-type": "application/problem+json" } }, "unavailable"],
    ["a page", { body: "<html>", headers: { "content-type": "text/html" } }, "unavailable"],
    ["half of the sound", { ...mp3, events: ["one", "two"], cutAfter: 1 }, "unavailable"],
    [
      "an unknown compression",
      { body: "AAAA", headers: { "content-type": "audio/mpeg", "content-encoding": "zip" } },
      "unavailable",
    ],
    ["a field", mockError(400, "no", { param: "input" }), refused("no", "input.text")],
    ["an unchanged field", mockError(400, "no", { param: "voice" }), refused("no", "input.voice")],
  ],
  "openai transcription": [
    ["no text", { body: { usage: { type: "duration", seconds: 1 } } }, "unavailable"],
    ["no JSON", { body: "Hello", headers: { "content-type": "text/plain" } }, "unavailable"],
    ["an error", { body: { error: { message: "x", type: "rate_limit_error" } } }, "busy"],
    ["no length", { body: { text: "Hm." } }, { kind: "refused", param: "input.file" }],
  ],
  "openai video": [
    ["moderated", mockError(400, "moderated", { code: "moderation_blocked" }), "refused"],
    ["a field", mockError(400, "No.", { param: "seconds" }), refused("No.", "input.duration")],
    ["an unchanged field", mockError(400, "No.", { param: "size" }), refused("No.", "input.size")],
    ["full", mockError(429, "Slow down", { headers: { "retry-after": "5" } }), busy(5)],
    ["no id", { body: { status: "queued" } }, "unavailable"],
  ],
  "gemini images": [
    ["a blocked prompt", { blockReason: "PROHIBITED_CONTENT" }, refused("The prompt was blocked: PROHIBITED_CONTENT.")],
    [
      "a withheld image",
      { parts: [], finishReason: "IMAGE_SAFETY" },
      refused("The model made no image: IMAGE_SAFETY."),
    ],
    [
      "another's work",
      { parts: [], finishReason: "IMAGE_RECITATION" },
      refused("The model made no image: IMAGE_RECITATION."),
    ],
    [
      "none made",
      { text: "No.", parts: [{ text: "I cannot." }], finishReason: "NO_IMAGE" },
      refused("The model made no image: NO_IMAGE. I cannot."),
    ],
    ["words", { parts: [{ text: "I can " }, { text: "not." }] }, refused("The model made no image. I can not.")],
    [
      "a break",
      { parts: [], finishReason: "IMAGE_OTHER" },
      { kind: "unavailable", message: "an answer without image (IMAGE_OTHER)" },
    ],
    ["a draft", draft, { kind: "unavailable", message: "an answer without image (STOP)" }],
    ["sound", inline("audio/wav", "AAAA"), "unavailable"],
    ["an empty image", inline("image/png", ""), "unavailable"],
    ["nonsense", { parts: [null, 7, {}, { inlineData: "x" }, { inlineData: { data: 7 } }] }, "unavailable"],
  ],
  "gemini speech": [
    ["no rate", inline("audio/L16", "AAAA"), "unavailable"],
    ["another form", inline("audio/ogg;rate=24000", "AAAA"), "unavailable"],
    ["an image", inline("image/png", "AAAA"), "unavailable"],
    ["a block", { blockReason: "OTHER" }, "refused"],
  ],
  "gemini video": [["no id", { body: { status: "in_progress" } }, "unavailable"]],
  "fal video": [
    ["no key", detail(401, "No user found for Key ID and Secret"), "misconfigured"],
    ["no money", detail(403, "User is locked. Reason: Exhausted balance."), "misconfigured"],
    ["no such endpoint", detail(404, "Application 'model' not found"), "misconfigured"],
    [
      "a field that the model does not take",
      falError(422, "less_than_equal", "At most 15", { loc: ["body", "shots", 1, "duration"] }),
      refused("At most 15", "input.shots[1].duration"),
    ],
    [
      "moderated",
      falError(422, "content_policy_violation", "Flagged.", { loc: ["body", "prompt"] }),
      refused("Flagged.", "input.prompt"),
    ],
    ["of a type that is unknown", falError(422, "brand_new", "No."), refused("No.")],
    ["malformed", { status: 400, body: { detail: "Bad", error_type: "bad_request" } }, refused("Bad")],
    [
      "worth another try by the header",
      falError(422, "brand_new", "No.", { headers: { "x-fal-retryable": "true" } }),
      "unavailable",
    ],
    [
      "the same by the header's newer name",
      falError(400, "brand_new", "No.", { headers: { "x-fal-needs-retry": "1" } }),
      "unavailable",
    ],
    ["a service behind it", falError(400, "downstream_service_error", "oops"), "unavailable"],
    ["too slow", falError(504, "generation_timeout", "slow"), "timeout"],
    [
      "without a runner",
      { status: 400, body: { detail: "no", error_type: "runner_scheduling_failure" } },
      "unavailable",
    ],
    ["too many", detail(429, "Too many", { "x-ratelimit-reset": "12" }), busy(12)],
    ["too many at once", falError(400, "concurrent_requests_limit", "Too many"), "busy"],
    ["down", detail(500, "oops"), "unavailable"],
    ["cut off", { cutAfter: -1 }, "unavailable"],
    ["an id that is a path", { body: { request_id: "../../x", status: "IN_QUEUE" } }, "unavailable"],
  ],
  "fal images": [["a field", falError(422, "x", "No.", { loc: ["body", "seed"] }), refused("No.", "seed")]],
  "replicate video": [
    ["a key that is not accepted", replicateError(401, "Unauthenticated"), "misconfigured"],
    ["no credit", replicateError(402, "Monthly spend limit reached"), "misconfigured"],
    ["no such model", replicateError(404, "not found"), "misconfigured"],
    [
      "no such version",
      replicateError(422, "It does not exist", { title: "Invalid version or not permitted" }),
      "misconfigured",
    ],
    [
      "a value that the model does not take",
      replicateError(422, "- input.duration: no\n", invalid("enum", "input.duration", "must be one of 4, 6, 8")),
      refused("must be one of 4, 6, 8", "input.duration"),
    ],
    [
      "a field that is missing",
      replicateError(422, "- input: no\n", invalid("required", "input", "prompt is required")),
      refused("prompt is required", "input.prompt"),
    ],
    [
      "too many, with Retry-After",
      { ...replicateError(429, "Request was throttled."), headers: { "retry-after": "7" } },
      busy(7),
    ],
    ["a wait in the text", replicateError(429, "Your rate limit resets in ~30s."), busy(30)],
    ["a wait in a field", replicateError(429, "Throttled.", { retry_after: 9 }), busy(9)],
    ["down", replicateError(500, "oops"), "unavailable"],
    ["a connection that breaks", { cutAfter: -1 }, "unavailable"],
    ["no JSON", { body: "<html>" }, "unavailable"],
    ["an id that is a path", { body: { id: "../models", status: "starting" } }, "unavailable"],
  ],
  "replicate images": [
    ["a field", replicateError(422, "no", invalid("x", "input.aspect_ratio", "No.")), refused("No.", "aspect_ratio")],
  ],
};

test.each(
  Object.entries(answers).flatMap(([of, rows]) => {
    const [name, task] = of.split(" ") as [ProviderName, Task];
    return rows.map(([what, answer, failure]) => ({ name, task, what, answer, failure }));
  }),
)("$name, $task: $what as the first answer fails the call, which is not sent again", async (row) => {
  const failed = await failureOf(row.name, row.task, [row.answer]);
  expect(failed).toMatchObject({ failure: fields(row.failure), requests: 1, remembered: [] });
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

const jobs: Readonly<Partial<Record<ProviderName, readonly (readonly [script: object, Failure])[]>>> = {
  openai: [
    [failedJob({ code: "moderation_blocked", message: "Blocked." }), refused("Blocked.")],
    [failedJob({ type: "invalid_request_error", message: "No.", param: "size" }), refused("No.", "input.size")],
    [failedJob({ type: "invalid_request_error", message: "No.", param: "seconds" }), { param: "input.duration" }],
    [failedJob({ code: "rate_limit_exceeded", message: "Full." }), { kind: "busy", message: "status 429: Full." }],
    [
      failedJob({ code: "server_error", message: "It broke." }),
      { kind: "unavailable", message: "status 500: It broke." },
    ],
    [failedJob(null), { kind: "unavailable", message: "status 500" }],
  ],
  gemini: [
    [omni("completed", said({ type: "text", text: "No." })), refused("The model made no video. No.")],
    [omni("completed", { steps: [] }), "unavailable"],
    [omni("completed", {}), "unavailable"],
    [omni("completed", theirs), "unavailable"],
    [omni("failed", { errors: [{ code: "SAFETY", message: "Blocked." }] }), refused("Blocked.")],
    [omni("failed", { finish_reason: "PROHIBITED_CONTENT" }), refused("The video was withheld for safety.")],
    [omni("failed", { error: broken }), { kind: "unavailable", message: "status 500: It broke." }],
    [omni("failed", { errors: [null, broken] }), { kind: "unavailable", message: "status 500: It broke." }],
    [omni("failed", wrong(3, "Bad image.")), refused("Bad image.")],
    [omni("failed", wrong(8, "Full.")), { kind: "busy", message: "status 429: Full." }],
    [omni("failed", wrong(9, "Billing.")), "misconfigured"],
    [omni("failed", {}), "unavailable"],
    [omni("incomplete", {}), "unavailable"],
    [omni("cancelled", {}), "unavailable"],
    [omni("budget_exceeded", {}), "unavailable"],
    [omni("requires_action", {}), "unavailable"],
  ],
  fal: [
    [{ result: flagged }, "refused"],
    [{ result: falError(422, "file_download_error", "Cannot load.") }, "refused"],
    [{ failed: { error: "Request timed out", error_type: "request_timeout" } }, "timeout"],
    [{ failed: { error: "Bad request", error_type: "bad_request" } }, "refused"],
    [{ failed: { error: "gone", error_type: "runner_disconnected" } }, "unavailable"],
    [{ failed: { error: "cancelled", error_type: "client_cancelled" } }, "unavailable"],
    [{ failed: { error: "oops" } }, "unavailable"],
  ],
  replicate: [
    [prediction("The input was flagged as sensitive. (E005) (x)"), "refused"],
    [prediction("NSFW content detected. Try running it again."), "refused"],
    [prediction("E1001: model ran out of memory"), refused("E1001: model ran out of memory")],
    [prediction("ValueError: prompt is too long"), "refused"],
    [
      prediction("Failed to load https://a.example/b.png?X-Signature=secret: 403"),
      refused("Failed to load https://a.example/b.png 403"),
    ],
    [prediction("Service is unavailable due to high demand. (E003)"), "busy"],
    [prediction("Prediction interrupted; please retry (code: PA)"), "unavailable"],
    [prediction("Director: unexpected error handling prediction (E8765)"), "unavailable"],
    [prediction("Service is temporarily unavailable. (E004)"), "unavailable"],
    [prediction("CUDA error: an illegal memory access"), "unavailable"],
    [prediction("KeyError: 'x'"), { kind: "unavailable", message: expect.stringContaining("KeyError: 'x'") as string }],
    [prediction(null), { kind: "unavailable", message: expect.stringContaining("failed") as string }],
    [prediction("invalid", "canceled"), "unavailable"],
    [prediction("invalid", "aborted"), "unavailable"],
    [output(null), "unavailable"],
    [output({ seed: 3 }), "unavailable"],
    [output(deep), "unavailable"],
  ],
};

test.each(Object.entries(jobs).flatMap(([name, rows]) => rows.map((row) => [name as ProviderName, ...row] as const)))(
  "%s: a job that fails with %j",
  async (name, script, expected) => {
    // A failed video of OpenAI is scripted as the answer to the poll.
    const answers = name === "openai" ? [{}, script] : [script];
    expect((await failureOf(name, "video", answers, [2_000])).failure).toMatchObject(fields(expected));
  },
);

test("a poll that fails is repeated, and the log does not quote the provider, which might quote a customer's key", async () => {
  const lines: string[] = [];
  const log = createLogger("test", "debug", { write: (line) => void lines.push(line) });
  const { mock, clock, provider, stored, call } = await startProvider("openai");
  mock.respond({}, mockError(500, "Down for customer-key-1."));
  const made = provider.generate(call("video", usual.video ?? {}, { log }));
  await clock.pass(2_000, 3_000);
  await made;
  expect(stored).toHaveLength(1);
  expect(lines.filter((line) => line.includes("polling"))).toEqual([expect.stringContaining('"status":500')]);
  expect(lines.join()).not.toContain("Down for");
});
