import { describe, expect, test } from "vitest";
import { Aborted } from "../../workers/running.ts";
import { startFal } from "../support/hosted-setup.ts";
import { uploadsOf } from "../support/media-calls-setup.ts";
import { falError, type MockFal, mockRequestId } from "../support/mock-fal.ts";
import { mockMp3, mockPng } from "../support/mock-openai-media.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const fox = { prompt: "a fox" };
const submitted = "POST /acme/model/text-to-image";
const look = `GET /acme/model/requests/${mockRequestId}/status?logs=0`;
const result = `GET /acme/model/requests/${mockRequestId}`;
const asked = (mock: MockFal) => mock.requests.map(({ method, path }) => `${method} ${path}`);

describe("a request that succeeds", () => {
  test("is submitted once, stored with its endpoint, polled, and its files are stored", async () => {
    const { mock, clock, provider, stored, remembered, call } = await startFal();
    mock.respond({ states: ["IN_QUEUE", "IN_PROGRESS", "COMPLETED"] });
    const made = provider.generate(call("images", { ...fox, n: 1, size: "1280x720", seed: 7 }));
    await clock.pass(2_000, 3_000, 4_500);
    expect(await made).toEqual({
      output: { timings: { inference: 0.5 }, seed: 7, has_nsfw_concepts: [false], prompt: "a fox" },
      usage: { image: 1 },
    });
    expect(asked(mock)).toEqual([submitted, look, look, look, result, "GET /out/0.png"]);
    expect(mock.requests[0]?.body).toEqual({ ...fox, seed: 7, image_size: { width: 1280, height: 720 } });
    expect(remembered).toEqual([`acme/model/text-to-image/requests/${mockRequestId}`]);
    expect(stored).toEqual([{ bytes: mockPng, about: { width: 1, height: 1 } }]);
  });

  test("asks the provider to store as little as possible", async () => {
    const { mock, clock, provider, call } = await startFal();
    const made = provider.generate(call("images", fox));
    await clock.pass(2_000);
    await made;
    expect(mock.requests[0]?.headers).toMatchObject({
      authorization: "Key fal-operator",
      "x-fal-store-io": "0",
      "x-fal-object-lifecycle-preference": '{"expiration_duration_seconds":3600}',
    });
    expect(mock.requests.at(-1)?.headers).not.toHaveProperty("authorization");
  });

  test("several images are requested by the provider's field; those that its filter blackened are not delivered", async () => {
    const { mock, clock, provider, stored, call } = await startFal();
    const images = [{ url: "0.png" }, { url: "1.png" }, { url: "2.png" }];
    mock.respond({ output: { images, has_nsfw_concepts: [false, true, false] } });
    const made = provider.generate(call("images", { ...fox, n: 3 }));
    await clock.pass(2_000);
    expect((await made).usage).toEqual({ image: 2 });
    expect(mock.requests[0]?.body).toEqual({ ...fox, num_images: 3 });
    expect(stored).toHaveLength(2);
    mock.respond({ output: { images, has_nsfw_concepts: [true, true, true] } });
    const none = errorOf(provider.generate(call("images", { ...fox, n: 3 })));
    await clock.pass(2_000);
    expect(await none).toMatchObject({ kind: "refused", param: "prompt" });
  });

  test.each([
    [
      "video",
      { video: { url: "0.mp4", content_type: "video/mp4" }, seed: 1 },
      { ...fox, duration: "8s" },
      { second: 8 },
    ],
    ["video", { video: { url: "0.mp4", duration: 5.5 } }, { ...fox, duration: "auto" }, { second: 5.5 }],
    ["speech", { audio: { url: "0.mp3" } }, { prompt: "Hi 🦊", voice_setting: {} }, { character: 4 }],
    ["music", { audio: { url: "0.mp3" } }, { prompt: "a waltz", music_length_ms: 30_500 }, { request: 1 }],
  ] as const)("%s in %j is counted", async (task, output, input, usage) => {
    const { mock, clock, provider, stored, call } = await startFal();
    mock.respond({ output });
    const made = provider.generate(call(task, input));
    await clock.pass(2_000);
    expect((await made).usage).toEqual(usage);
    expect(stored).toHaveLength(1);
  });

  test("a video of unreported length is measured, and fails if it cannot be", async () => {
    const { mock, clock, provider, stored, call } = await startFal();
    mock.respond({ output: { video: { url: "0.mp4" } } });
    const failure = errorOf(provider.generate(call("video", { ...fox, duration: "auto" })));
    await clock.pass(2_000, 2_000, 2_000);
    expect(await failure).toMatchObject({ kind: "unavailable" });
    expect(stored).toEqual([]);
  });

  test("an upload without a link is sent as its bytes", async () => {
    const { mock, clock, provider, call } = await startFal();
    const uploads = uploadsOf([{ id: "upl_1", param: "input.image_url", mime: "audio/mpeg", content: mockMp3 }]);
    mock.respond({ output: { video: { url: "0.mp4" } } });
    const made = provider.generate(call("video", { image_url: "upl_1", duration: 5 }, { uploads }));
    await clock.pass(2_000);
    await made;
    expect(mock.requests[0]?.body).toEqual({
      image_url: `data:audio/mpeg;base64,${mockMp3.toString("base64")}`,
      duration: 5,
    });
  });

  test("an upload that is named several times counts each time", async () => {
    const { mock, provider, call } = await startFal();
    const content = Buffer.alloc(3 * 1024 * 1024);
    const uploads = uploadsOf([{ id: "upl_1", param: "input.image_urls[0]", mime: "image/png", content }]);
    const input = { image_urls: ["upl_1", "upl_1", "upl_1"], duration: 5 };
    expect(await errorOf(provider.generate(call("video", input, { uploads })))).toMatchObject({
      code: "invalid_value",
      param: "input.image_urls[0]",
    });
    expect(mock.requests).toHaveLength(0);
  });

  test.each([
    "https://rest.fal.ai/storage/x",
    "https://queue.fal.run/a/b/requests/c",
    "https://api.fal.ai/v1/serverless/files/x",
  ])("%s lies under the operator's key: refused", async (address) => {
    const { mock, provider, call } = await startFal();
    expect(await errorOf(provider.generate(call("images", { ...fox, image_urls: [address] })))).toMatchObject({
      kind: "refused",
      param: "image_urls[0]",
    });
    expect(mock.requests).toEqual([]);
  });
});

describe("a refused submission", () => {
  const detail = (status: number, detail: string, headers = {}) => ({ status, headers, body: { detail } });
  test.each([
    ["no key", detail(401, "No user found for Key ID and Secret"), { kind: "misconfigured" }],
    ["no money", detail(403, "User is locked. Reason: Exhausted balance."), { kind: "misconfigured" }],
    ["no such endpoint", detail(404, "Application 'model' not found"), { kind: "misconfigured" }],
    [
      "a field that the model does not take",
      falError(422, "less_than_equal", "Input should be less than or equal to 15", {
        loc: ["body", "shots", 1, "duration"],
      }),
      { kind: "refused", param: "input.shots[1].duration", message: "Input should be less than or equal to 15" },
    ],
    [
      "moderated",
      falError(422, "content_policy_violation", "The content was flagged.", { loc: ["body", "prompt"] }),
      { kind: "refused", param: "input.prompt" },
    ],
    ["of a type that is unknown", falError(422, "brand_new", "No."), { kind: "refused", message: "No." }],
    ["malformed", { status: 400, body: { detail: "Bad request", error_type: "bad_request" } }, { kind: "refused" }],
    [
      "refused, but worth another try by the header",
      falError(422, "brand_new", "No.", { headers: { "x-fal-retryable": "true" } }),
      { kind: "unavailable" },
    ],
    [
      "the same by the header's newer name",
      falError(400, "brand_new", "No.", { headers: { "x-fal-needs-retry": "1" } }),
      { kind: "unavailable" },
    ],
    ["a service behind it", falError(400, "downstream_service_error", "oops"), { kind: "unavailable" }],
    ["too slow", falError(504, "generation_timeout", "slow"), { kind: "timeout" }],
    [
      "without a runner",
      { status: 503, body: { detail: "no", error_type: "runner_scheduling_failure" } },
      { kind: "unavailable" },
    ],
    ["too many", detail(429, "Too many", { "x-ratelimit-reset": "12" }), { kind: "busy", retryAfterMs: 12_000 }],
    ["too many at once", falError(429, "concurrent_requests_limit", "Too many"), { kind: "busy" }],
    ["down", detail(500, "oops"), { kind: "unavailable" }],
    ["cut off", { cutAfter: -1 }, { kind: "unavailable" }],
    ["an id that is a path", { body: { request_id: "../../x", status: "IN_QUEUE" } }, { kind: "unavailable" }],
  ])("%s: said once, and nothing is sent again", async (_, answer, failure) => {
    const { mock, provider, remembered, call } = await startFal();
    mock.respond(answer);
    expect(await errorOf(provider.generate(call("video", fox)))).toMatchObject(failure);
    expect([mock.requests.length, remembered]).toEqual([1, []]);
  });

  test("a field of the images route has the caller's name", async () => {
    const { mock, provider, call } = await startFal();
    mock.respond(
      falError(422, "x", "no", { loc: ["body", "num_images"] }),
      falError(422, "x", "no", { loc: ["body", "image_size", "width"] }),
    );
    const failures = [];
    for (let i = 0; i < 2; i++)
      failures.push(await errorOf(provider.generate(call("images", { ...fox, n: 2, size: "9x9" }))));
    expect(failures).toMatchObject([{ param: "n" }, { param: "size.width" }]);
  });
});

describe("a request that fails in the queue", () => {
  test.each([
    [
      "by its result",
      { result: falError(422, "content_policy_violation", "Flagged.", { loc: ["body", "prompt"] }) },
      "refused",
    ],
    ["by a file it could not load", { result: falError(422, "file_download_error", "Cannot load.") }, "refused"],
    ["by its state", { failed: { error: "Request timed out", error_type: "request_timeout" } }, "timeout"],
    ["by what was asked", { failed: { error: "Bad request", error_type: "bad_request" } }, "refused"],
    ["by its runner", { failed: { error: "gone", error_type: "runner_disconnected" } }, "unavailable"],
    ["cancelled by somebody else", { failed: { error: "cancelled", error_type: "client_cancelled" } }, "unavailable"],
    ["although there is a result", { failed: { error: "oops" } }, "unavailable"],
  ])("%s", async (_, scripted, kind) => {
    const { mock, clock, provider, stored, call } = await startFal();
    mock.respond(scripted);
    const failure = errorOf(provider.generate(call("video", { ...fox, duration: 4 })));
    await clock.pass(2_000);
    expect(await failure).toMatchObject({ kind });
    expect(stored).toEqual([]);
  });

  test("a result that cannot be fetched is requested again", async () => {
    const { mock, clock, provider, stored, call } = await startFal();
    mock.respond({}, {}, { cutAfter: -1 }, { status: 502, body: "bad gateway" });
    const made = provider.generate(call("images", fox));
    await clock.pass(2_000, 2_000, 2_000);
    await made;
    expect([asked(mock).filter((each) => each === result).length, stored.length]).toEqual([3, 1]);
  });
});

describe("another delivery, and a caller who disconnects", () => {
  test("the next worker needs only the stored job id", async () => {
    const { mock, clock, provider, stored, remembered, call } = await startFal();
    mock.respond({ states: ["IN_PROGRESS", "COMPLETED"] });
    const first = new AbortController();
    const abandoned = errorOf(provider.generate(call("images", fox, { signal: first.signal })));
    await clock.pass(2_000);
    await (await mock.request(1)).closed;
    first.abort(new Aborted("lost"));
    await abandoned;
    const remember = () => Promise.reject(new Error("again"));
    const more = { job: remembered[0], remember, model: "renamed/since" };
    expect((await provider.generate(call("images", fox, more))).usage).toEqual({ image: 1 });
    expect(asked(mock)).toEqual([submitted, look, look, result, "GET /out/0.png"]);
    expect(stored).toHaveLength(1);
  });

  test("a caller who disconnects while the request is queued: it is canceled at once, and not billed", async () => {
    const { mock, clock, provider, stored, call } = await startFal();
    mock.respond({ states: ["IN_QUEUE"] });
    const caller = new AbortController();
    const answer = errorOf(provider.generate(call("images", fox, { disconnected: caller.signal })));
    await clock.pass(2_000);
    await clock.begun(3_000);
    const reason = new Aborted("disconnected");
    caller.abort(reason);
    expect(await answer).toBe(reason);
    expect(asked(mock)).toEqual([submitted, look, look, `PUT ${result.slice(4)}/cancel`]);
    expect([mock.billed(), stored]).toEqual([0, []]);
  });

  test("a caller who disconnects while it is in progress: it is billed, so it continues and is delivered", async () => {
    const { mock, clock, provider, stored, call } = await startFal();
    mock.respond({ states: ["IN_PROGRESS", "IN_PROGRESS", "COMPLETED"] });
    const caller = new AbortController();
    const answer = provider.generate(call("images", fox, { disconnected: caller.signal }));
    await clock.pass(2_000);
    await clock.begun(3_000);
    caller.abort(new Aborted("disconnected"));
    await clock.pass(4_500);
    expect((await answer).usage).toEqual({ image: 1 });
    expect(asked(mock)).toEqual([submitted, look, look, look, result, "GET /out/0.png"]);
    expect([mock.billed(), stored.length]).toEqual([1, 1]);
  });

  test("a caller who disconnects before the submission: nothing is submitted", async () => {
    const { mock, provider, call } = await startFal();
    const reason = new Aborted("disconnected");
    expect(await errorOf(provider.generate(call("images", fox, { disconnected: AbortSignal.abort(reason) })))).toBe(
      reason,
    );
    expect(mock.requests).toEqual([]);
  });

  test("an aborted call rejects at once, and the request is canceled", async () => {
    const { mock, clock, provider, stored, call } = await startFal();
    mock.respond({}, { beforeHeaders: new Promise(() => {}) });
    const caller = new AbortController();
    const answer = errorOf(provider.generate(call("images", fox, { signal: caller.signal })));
    await clock.pass(2_000);
    const asking = await mock.request(1);
    const reason = new Aborted("disconnected");
    caller.abort(reason);
    expect(await answer).toBe(reason);
    await asking.closed;
    await (await mock.request(2)).closed;
    expect(asked(mock).at(-1)).toBe(`PUT /acme/model/requests/${mockRequestId}/cancel`);
    expect([asking.aborted, stored]).toEqual([true, []]);
  });
});
