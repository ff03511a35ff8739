import { describe, expect, test } from "vitest";
import type { JsonObject } from "#json";
import { noCapacity } from "../../shared/errors.ts";
import { Aborted } from "../../workers/running.ts";
import { uploadsOf } from "../support/media-calls-setup.ts";
import { type MockOpenai, mockError } from "../support/mock-openai.ts";
import { mockMp4, mockPng } from "../support/mock-openai-media.ts";
import { startMedia } from "../support/openai-media-setup.ts";
import { errorOf, gate } from "../support/upstreams-setup.ts";

const fox = { prompt: "a fox", seconds: "8", size: "1280x720" };
const asked = (mock: MockOpenai) =>
  mock.requests.map(({ method, path }) => `${method} ${path.replace("/v1/videos", "")}`);
const usual = ["POST ", "GET /video_1", "GET /video_1/content"];

describe("a job that succeeds", () => {
  test("is submitted once, polled, and its file is stored unchanged", async () => {
    const { mock, clock, provider, stored, call } = await startMedia();
    const remembered: string[] = [];
    const remember = (job: string) => Promise.resolve(void remembered.push(job));
    const made = provider.generate(call("video", { ...fox, style: "noir", n: 1 }, { remember }));
    await clock.pass(2_000);
    expect(await made).toEqual({
      output: { created_at: 1_700_000_000, completed_at: 1_700_000_060, seconds: "8", size: "1280x720" },
      usage: { second: 8 },
    });
    expect(asked(mock)).toEqual(usual);
    expect(mock.requests[0]?.body).toEqual({ ...fox, style: "noir", n: 1, model: "provider-model" });
    expect(remembered).toEqual(["video_1"]);
    expect(stored).toEqual([{ bytes: mockMp4, about: undefined }]);
  });

  test("is polled with growing pauses, up to ten seconds", async () => {
    const { mock, clock, provider, call } = await startMedia();
    mock.respond({
      states: ["queued", "queued", "in_progress", "in_progress", "in_progress", "in_progress", "completed"],
    });
    const made = provider.generate(call("video", fox));
    await clock.pass(2_000, 3_000, 4_500, 6_750, 10_000, 10_000, 10_000);
    await made;
    expect(mock.requests).toHaveLength(9);
  });

  test("may be done before the first poll", async () => {
    const { mock, provider, stored, call } = await startMedia();
    mock.respond(
      { body: { id: "a/../b?c", status: "completed", seconds: "4" } },
      { body: "video", headers: { "content-type": "video/mp4" } },
    );
    await provider.generate(call("video", fox));
    expect(asked(mock)).toEqual(["POST ", "GET /a%2F..%2Fb%3Fc/content"]);
    expect(stored).toHaveLength(1);
  });

  test("duration, resolution and image map to the provider's names; a number of seconds is written as text", async () => {
    const { mock, clock, provider, call } = await startMedia();
    const made = provider.generate(call("video", { prompt: "a fox", duration: 4, resolution: "720x1280" }));
    await clock.pass(2_000);
    expect((await made).usage).toEqual({ second: 4 });
    expect(mock.requests[0]?.body).toEqual({
      prompt: "a fox",
      seconds: "4",
      size: "720x1280",
      model: "provider-model",
    });
  });

  test.each(["image", "input_reference"])("a first image (%s) is sent as a form", async (field) => {
    const { mock, clock, provider, call } = await startMedia();
    const uploads = uploadsOf([{ id: "upl_1", param: `input.${field}`, mime: "image/png", content: mockPng }]);
    const made = provider.generate(call("video", { prompt: "a fox", seconds: 4, [field]: "upl_1" }, { uploads }));
    await clock.pass(2_000);
    await made;
    const text = (name: string, value: string) => ({ name, bytes: Buffer.from(value) });
    expect(mock.requests[0]?.form).toEqual([
      text("prompt", "a fox"),
      text("seconds", "4"),
      { name: "input_reference", filename: "file-2.png", type: "image/png", bytes: mockPng },
      text("model", "provider-model"),
    ]);
  });

  test.each([
    ["a shorter video counts as it is", { seconds: "5" }, fox, 5],
    ["a longer one as it was asked for", { seconds: 12 }, fox, 8],
    ["one of untold length as it was asked for", {}, fox, 8],
    ["without a wish as the provider tells", { seconds: "4" }, { prompt: "a fox" }, 4],
  ])("%s", async (_, reported, input: JsonObject, second) => {
    const { mock, provider, call } = await startMedia();
    mock.respond(
      { body: { id: "v", status: "completed", ...reported } },
      { body: "video", headers: { "content-type": "video/mp4" } },
    );
    expect((await provider.generate(call("video", input))).usage).toEqual({ second });
  });
});

describe("another delivery", () => {
  test("submits nothing: it polls at once, and continues the job", async () => {
    const { mock, clock, provider, stored, call } = await startMedia();
    mock.respond({ states: ["in_progress", "completed"] });
    const first = new AbortController();
    const abandoned = errorOf(provider.generate(call("video", fox, { signal: first.signal })));
    await clock.pass(2_000);
    await (await mock.request(1)).closed;
    first.abort(new Aborted("shutdown"));
    await abandoned;
    const remember = () => Promise.reject(new Error("again"));
    const { usage } = await provider.generate(call("video", fox, { job: "video_1", remember }));
    expect(asked(mock)).toEqual([...usual.slice(0, 2), ...usual.slice(1)]);
    expect([usage, stored.length]).toEqual([{ second: 8 }, 1]);
  });

  test("a job is not polled before its id is stored", async () => {
    const { mock, clock, provider, call } = await startMedia();
    const written = gate();
    const begun = gate();
    const remember = () => {
      begun.resolve();
      return written.promise;
    };
    const made = provider.generate(call("video", fox, { remember }));
    await begun.promise;
    clock.advance(60_000);
    await new Promise(setImmediate);
    expect(mock.requests).toHaveLength(1);
    written.resolve();
    await clock.pass(2_000);
    await made;
  });
});

describe("the download", () => {
  test("is repeated if it breaks off", async () => {
    const { mock, clock, provider, stored, call } = await startMedia();
    const mp4 = { headers: { "content-type": "video/mp4" }, done: false as const };
    mock.respond({}, {}, { ...mp4, events: ["one", "two"], cutAfter: 1 }, { body: { error: { message: "not yet" } } });
    const made = provider.generate(call("video", fox));
    await clock.pass(2_000, 2_000, 2_000);
    await made;
    expect(stored).toEqual([{ bytes: mockMp4, about: undefined }]);
    expect(mock.requests).toHaveLength(5);
  });

  test("fails if it breaks off three times", async () => {
    const { mock, clock, provider, stored, call } = await startMedia();
    mock.respond({}, {}, mockError(500, "no"), mockError(500, "no"), mockError(500, "no"));
    const failure = errorOf(provider.generate(call("video", fox)));
    await clock.pass(2_000, 2_000, 2_000);
    expect(await failure).toMatchObject({ kind: "unavailable" });
    expect(stored).toEqual([]);
  });

  test("is not repeated if storage fails", async () => {
    const { mock, clock, provider, call } = await startMedia();
    const error = noCapacity("Storage is unavailable.");
    const failure = errorOf(provider.generate(call("video", fox, { store: () => Promise.reject(error) })));
    await clock.pass(2_000);
    expect(await failure).toBe(error);
    expect(asked(mock).slice(0, 3)).toEqual(usual);
  });
});
