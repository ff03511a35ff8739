import { describe, expect, test } from "vitest";
import { noCapacity } from "../../shared/errors.ts";
import { type AbortCause, Aborted } from "../../workers/running.ts";
import { operatorKey, startGemini } from "../support/gemini-setup.ts";
import { uploadsOf } from "../support/media-calls-setup.ts";
import { type MockGemini, mockGeminiError } from "../support/mock-gemini.ts";
import { mockMp4, mockPng } from "../support/mock-openai-media.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const fox = { prompt: "a fox", duration: 8, resolution: "720p", aspect_ratio: "16:9" };
const asked = (mock: MockGemini) =>
  mock.requests.map(({ method, path }) => `${method} ${path.replace("/v1beta/", "")}`);
const download = "GET files/video1:download?alt=media";
const usual = ["POST interactions", "GET interactions/v1_mock1", download];
const imageUpload = (number: number, param: string) =>
  ({ id: `upl_${number}`, param, mime: "image/png", content: mockPng }) as const;

describe("a video", () => {
  test("is started in the background, polled, and stored unchanged", async () => {
    const { mock, clock, provider, stored, media } = await startGemini();
    const remembered: string[] = [];
    const remember = (job: string) => Promise.resolve(void remembered.push(job));
    const made = provider.generate(media("video", { ...fox, seed: 7, style: "noir" }, { remember }));
    await clock.pass(2_000);
    expect(await made).toEqual({ output: {}, usage: { second: 8 } });
    expect(asked(mock)).toEqual(usual);
    expect(mock.requests[0]?.body).toEqual({
      model: "gemini-mock",
      input: [{ type: "text", text: "a fox" }],
      response_format: { type: "video", delivery: "uri", duration: "8s", aspect_ratio: "16:9", resolution: "720p" },
      generation_config: { video_config: { task: "text_to_video" }, seed: 7 },
      background: true,
      store: true,
    });
    expect(remembered).toEqual(["v1_mock1"]);
    expect(stored).toEqual([{ bytes: mockMp4, about: undefined }]);
  });

  test.each([
    ["a first image", { image: "upl_1" }, ["image"], "image_to_video"],
    [
      "images to refer to",
      { reference_images: ["upl_1", "upl_2"] },
      ["reference_images", "reference_images"],
      "reference_to_video",
    ],
  ])("from %s", async (_, input, params, task) => {
    const { mock, clock, provider, media } = await startGemini();
    const uploads = uploadsOf(params.map((param, index) => imageUpload(index + 1, `input.${param}`)));
    const made = provider.generate(media("video", { prompt: "a fox", duration: "5", ...input }, { uploads }));
    await clock.pass(2_000);
    expect((await made).usage).toEqual({ second: 5 });
    const image = { type: "image", data: mockPng.toString("base64"), mime_type: "image/png" };
    expect(mock.requests[0]?.body).toMatchObject({
      input: [...params.map(() => image), { type: "text", text: "a fox" }],
      response_format: { duration: "5s" },
      generation_config: { video_config: { task } },
    });
  });

  test.each([
    ["no duration", { duration: undefined }, [], "duration"],
    ["half a second", { duration: 4.5 }, [], "duration"],
    ["no time", { duration: 0 }, [], "duration"],
    ["a word", { duration: "long" }, [], "duration"],
    ["no prompt", { prompt: undefined }, [], "prompt"],
    ["both kinds of images", { image: "upl_1", reference_images: "upl_2" }, [1, 2], "reference_images"],
    ["an image elsewhere", { last_image: "upl_1" }, [1], "input.image"],
    ["seven images", { reference_images: Array.from({ length: 7 }, () => "upl_1") }, [1], "reference_images"],
  ])("%s is refused, and nothing is begun", async (_, input, numbers, param) => {
    const { mock, provider, media } = await startGemini();
    const uploads = uploadsOf(numbers.map((number) => imageUpload(number, "input.image")));
    const failure = await errorOf(provider.generate(media("video", { ...fox, ...input }, { uploads })));
    expect(failure).toMatchObject({ kind: "refused", param });
    expect(mock.requests).toEqual([]);
  });

  test("another delivery continues the job, and starts none", async () => {
    const { mock, clock, provider, stored, media } = await startGemini();
    mock.respond({ states: ["queued", "in_progress", "completed"] });
    const first = new AbortController();
    const abandoned = errorOf(provider.generate(media("video", fox, { signal: first.signal })));
    await clock.pass(2_000);
    await (await mock.request(1)).closed;
    first.abort(new Aborted("shutdown"));
    await abandoned;
    const remember = () => Promise.reject(new Error("again"));
    const made = provider.generate(media("video", fox, { job: "v1_mock1", remember }));
    await clock.pass(2_000);
    expect((await made).usage).toEqual({ second: 8 });
    expect(asked(mock)).toEqual([...usual.slice(0, 2), ...usual.slice(1, 2), ...usual.slice(1)]);
    expect(stored).toHaveLength(1);
  });

  test("inside the answer is stored", async () => {
    const { mock, provider, stored, media } = await startGemini();
    const content = [
      { type: "text", text: "Here." },
      { type: "video", data: mockMp4.toString("base64") },
    ];
    mock.respond({ body: { id: "a/b", status: "completed", steps: [{ type: "model_output", content }] } });
    await provider.generate(media("video", fox));
    expect(stored).toEqual([{ bytes: mockMp4, about: undefined }]);
    expect(mock.requests).toHaveLength(1);
  });
});

const videoAt = (uri: string) => ({
  body: {
    id: "v1_x",
    status: "completed",
    steps: [{ type: "model_output", content: [{ type: "video", uri }] }],
  },
});

describe("the download", () => {
  test.each([
    "https://generativelanguage.googleapis.com/v1beta/files/video1:download?alt=media",
    "https://elsewhere.example/any/v1/files/video1:download",
  ])("of the provider's store (%s) is asked of the operator's address, with the key", async (uri) => {
    const { mock, provider, stored, media } = await startGemini();
    mock.respond(videoAt(uri));
    await provider.generate(media("video", fox));
    expect(asked(mock)[1]).toBe(download);
    expect(mock.requests[1]?.headers).toMatchObject({ "x-goog-api-key": operatorKey });
    expect(stored).toEqual([{ bytes: mockMp4, about: undefined }]);
  });

  test("from another address gets no key", async () => {
    const { mock, provider, stored, media } = await startGemini();
    const mp4 = { headers: { "content-type": "video/mp4" }, events: [mockMp4] };
    mock.respond(videoAt(`${mock.url}/made/here.mp4`), mp4);
    await provider.generate(media("video", fox));
    expect(mock.requests[1]).toMatchObject({ method: "GET", path: "/made/here.mp4" });
    expect(mock.requests[1]?.headers).not.toHaveProperty("x-goog-api-key");
    expect(stored).toEqual([{ bytes: mockMp4, about: undefined }]);
  });

  test.each(["http://127.0.0.1:1/x.mp4", "file:///etc/passwd", "gs://bucket/x.mp4", "nonsense"])(
    "goes to no address that is not public: %s",
    async (uri) => {
      const { mock, clock, provider, stored, media } = await startGemini();
      mock.respond(videoAt(uri));
      const failure = errorOf(provider.generate(media("video", fox)));
      await clock.pass(2_000, 2_000);
      expect(await failure).toMatchObject({ kind: "unavailable" });
      expect(stored).toEqual([]);
    },
  );

  test("is repeated twice if it breaks off", async () => {
    const { mock, clock, provider, stored, media } = await startGemini();
    const mp4 = { headers: { "content-type": "video/mp4" }, events: [mockMp4.subarray(0, 9), mockMp4.subarray(9)] };
    mock.respond({}, {}, { ...mp4, cutAfter: 1 }, mockGeminiError(503, "not yet"));
    const made = provider.generate(media("video", fox));
    await clock.pass(2_000, 2_000, 2_000);
    await made;
    expect(stored).toEqual([{ bytes: mockMp4, about: undefined }]);
    expect(mock.requests).toHaveLength(5);
  });

  test("is not repeated if storage fails", async () => {
    const { mock, clock, provider, media } = await startGemini();
    const error = noCapacity("Storage is unavailable.");
    const failure = errorOf(provider.generate(media("video", fox, { store: () => Promise.reject(error) })));
    await clock.pass(2_000);
    expect(await failure).toBe(error);
    expect(asked(mock).slice(0, 3)).toEqual(usual);
  });
});

const text = (words: string) => ({ steps: [{ type: "model_output", content: [{ type: "text", text: words }] }] });
const failing = { message: "It broke.", code: "internal" };

describe("a job that makes no video", () => {
  test.each([
    ["completed", text("I cannot show this person."), "refused", "The model made no video. I cannot show this person."],
    ["completed", { steps: [] }, "unavailable", undefined],
    ["completed", {}, "unavailable", undefined],
    [
      "completed",
      { steps: [{ type: "user_input", content: [{ type: "video", uri: "https://a/b" }] }] },
      "unavailable",
      undefined,
    ],
    ["failed", { errors: [{ code: "SAFETY", message: "Blocked for safety." }] }, "refused", "Blocked for safety."],
    ["failed", { finish_reason: "PROHIBITED_CONTENT" }, "refused", "The video was withheld for safety."],
    ["failed", { error: failing }, "unavailable", "status 500: It broke."],
    ["failed", { errors: [null, failing] }, "unavailable", "status 500: It broke."],
    [
      "failed",
      { steps: [{ type: "model_output", error: { code: 3, message: "Bad image." } }] },
      "refused",
      "Bad image.",
    ],
    [
      "failed",
      { steps: [{ type: "model_output", error: { code: 8, message: "Full." } }] },
      "busy",
      "status 429: Full.",
    ],
    [
      "failed",
      { steps: [{ type: "model_output", error: { code: 9, message: "Billing." } }] },
      "misconfigured",
      undefined,
    ],
    ["failed", {}, "unavailable", undefined],
    ["incomplete", {}, "unavailable", undefined],
    ["cancelled", {}, "unavailable", undefined],
    ["budget_exceeded", {}, "unavailable", undefined],
    ["requires_action", {}, "unavailable", undefined],
  ])("%s, with %j", async (status, outcome, kind, message) => {
    const { mock, clock, provider, stored, media } = await startGemini();
    mock.respond({ states: [status], outcome });
    const failure = errorOf(provider.generate(media("video", fox)));
    await clock.pass(2_000);
    expect(await failure).toMatchObject({ kind, ...(message !== undefined && { message }) });
    expect(stored).toEqual([]);
  });

  test("one that the provider no longer knows is not the caller's fault", async () => {
    const { clock, provider, media } = await startGemini();
    const failure = errorOf(provider.generate(media("video", fox, { job: "v1_gone" })));
    await clock.pass(2_000, 3_000);
    expect(await failure).toMatchObject({ kind: "misconfigured" });
  });

  test("a failed poll does not fail the job", async () => {
    const { mock, clock, provider, media } = await startGemini();
    mock.respond({}, mockGeminiError(500, "oops"), { body: { id: "v1_mock1", status: "sleeping" } });
    const made = provider.generate(media("video", fox));
    await clock.pass(2_000, 3_000, 4_500);
    expect((await made).usage).toEqual({ second: 8 });
  });

  test("a job without an id is not stored", async () => {
    const { mock, provider, media } = await startGemini();
    mock.respond({ body: { status: "in_progress" } });
    const remember = () => Promise.reject(new Error("there is none"));
    expect(await errorOf(provider.generate(media("video", fox, { remember })))).toMatchObject({ kind: "unavailable" });
    expect(mock.requests).toHaveLength(1);
  });
});

describe("a caller who disconnects", () => {
  const leave = async (cause: AbortCause) => {
    const { mock, clock, provider, media } = await startGemini();
    mock.respond({ states: ["in_progress"] });
    const caller = new AbortController();
    const answer = errorOf(provider.generate(media("video", fox, { signal: caller.signal })));
    await clock.pass(2_000);
    await (await mock.request(1)).closed;
    const reason = new Aborted(cause);
    caller.abort(reason);
    expect(await answer).toBe(reason);
    return { mock, clock };
  };

  test("is released at once; the job is canceled, and removed", async () => {
    const { mock } = await leave("disconnected");
    await (await mock.request(3)).closed;
    expect(asked(mock).slice(2)).toEqual(["POST interactions/v1_mock1/cancel", "DELETE interactions/v1_mock1"]);
  });

  test("a call that another worker takes over keeps its job", async () => {
    const { mock, clock } = await leave("lost");
    // Any further request has been sent by then.
    await new Promise(setImmediate);
    expect(clock.pending()).toBe(0);
    expect(mock.requests).toHaveLength(2);
  });
});
