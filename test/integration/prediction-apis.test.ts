import { describe, expect, test } from "vitest";
import type { JsonObject } from "#json";
import type { Task } from "../../shared/catalog/index.ts";
import { wavOf } from "../support/generation-setup.ts";
import { uploadsOf } from "../support/media-calls-setup.ts";
import { falError } from "../support/mock-fal.ts";
import { mockMp4, mockPng } from "../support/mock-openai-media.ts";
import { replicateError } from "../support/mock-replicate.ts";
import { startFal, startProvider, startReplicate } from "../support/provider-setup.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const fox = { prompt: "a fox" };
const imageUpload = { id: "upl_1", param: "input.image", mime: "image/png", content: mockPng };
/** A prediction of Replicate that succeeds at once. */
const at = (output: unknown, more: object = {}) => ({ states: ["succeeded"], output, ...more });

/** One call of a provider, whose jobs are done at the first poll. */
async function made(name: "replicate" | "fal", task: Task, input: JsonObject, answer: object = {}, more = {}) {
  const { mock, clock, provider, stored, call } = await startProvider(name);
  mock.respond(answer);
  const making = provider.generate(call(task, input, more));
  if (!("states" in answer)) await clock.pass(2_000);
  return { ...(await making), stored, requests: mock.requests, sent: mock.requests[0]?.body };
}

describe("a request", () => {
  test("to Replicate is submitted under its key, which the files do not get", async () => {
    const input = { ...fox, n: 2, aspect_ratio: "1:1", nested: { list: [1, null] } };
    const { output, usage, stored, requests } = await made("replicate", "images", { ...input, response_format: "url" });
    expect([output, usage]).toEqual([{}, { image: 2 }]);
    const { n: _, ...rest } = input;
    expect(requests[0]?.body).toEqual({ input: { ...rest, num_outputs: 2 } });
    expect(requests[0]?.headers).toMatchObject({
      authorization: "Bearer r8-operator",
      "content-type": "application/json",
    });
    expect(requests[0]?.headers).not.toHaveProperty("prefer");
    for (const { headers } of requests.slice(2)) expect(headers).not.toHaveProperty("authorization");
    expect(stored).toEqual(Array(2).fill({ bytes: mockPng, about: {} }));
  });

  test("to fal asks it to store as little as possible", async () => {
    const { output, usage, stored, requests } = await made("fal", "images", {
      ...fox,
      n: 1,
      size: "1280x720",
      seed: 7,
    });
    expect(output).toEqual({ timings: { inference: 0.5 }, seed: 7, has_nsfw_concepts: [false], prompt: "a fox" });
    expect(usage).toEqual({ image: 1 });
    expect(requests[0]?.body).toEqual({ ...fox, seed: 7, image_size: { width: 1280, height: 720 } });
    expect(requests[0]?.headers).toMatchObject({
      authorization: "Key fal-operator",
      "x-fal-store-io": "0",
      "x-fal-object-lifecycle-preference": '{"expiration_duration_seconds":3600}',
    });
    expect(requests.at(-1)?.headers).not.toHaveProperty("authorization");
    expect(stored).toEqual([{ bytes: mockPng, about: { width: 1, height: 1 } }]);
  });

  test.each([
    ["with the version", (url: string) => url],
    ["without it", (url: string) => url.replace("/v1", "")],
    ["behind a proxy's path", (url: string) => `${url.replace("/v1", "")}/v1/`],
  ])("to Replicate has the operator's address %s", async (_, baseUrl) => {
    const { mock, provider, call } = await startReplicate({ baseUrl });
    mock.respond({ states: ["succeeded"] });
    await provider.generate(call("images", fox));
    expect(mock.requests[0]?.path).toBe("/v1/models/acme/model/predictions");
  });

  test("for a version uses the endpoint for versions; a single image is requested without a count", async () => {
    const more = { model: "acme/model:5c7d5dc6" };
    const { requests, sent } = await made("replicate", "images", { ...fox, n: 1 }, at("0.png"), more);
    expect(requests[0]?.path).toBe("/v1/predictions");
    expect(sent).toEqual({ version: "5c7d5dc6", input: fox });
  });

  test("may name the provider's address in a prompt", async () => {
    const poster = { prompt: "a poster for api.replicate.com" };
    expect((await made("replicate", "images", poster, at("0.png"))).sent).toEqual({ input: poster });
  });

  test("has links to uploads, at any place, where the provider can fetch them", async () => {
    const link = "https://storage.example/upl_1?signature=1";
    const [[id, file] = []] = [...uploadsOf([{ ...imageUpload, content: 9 }])];
    const uploads = new Map([[id, { ...file, link }]]);
    const input = { image: "upl_1", shots: [{ reference: "upl_1" }], duration: 4 };
    const answer = at({ video: "0.mp4", first_frame: link });
    const { sent, stored } = await made("replicate", "video", input, answer, { uploads });
    expect(sent).toEqual({ input: { image: link, shots: [{ reference: link }], duration: 4 } });
    expect(stored).toHaveLength(1);
  });

  test("else has their bytes", async () => {
    const uploads = uploadsOf([imageUpload]);
    const image = `data:image/png;base64,${mockPng.toString("base64")}`;
    const input = { image: "upl_1", duration: 4 };
    const { sent } = await made("replicate", "video", input, at("0.mp4"), { uploads });
    expect(sent).toEqual({ input: { ...input, image } });
    const second = await made("fal", "video", input, { output: { video: { url: "0.mp4" } } }, { uploads });
    expect(second.sent).toEqual({ ...input, image });
  });

  test("that is refused names the field of the images route as the caller does", async () => {
    const { mock, provider, call } = await startReplicate();
    const field = { type: "x", field: "input.num_outputs", description: "no" };
    mock.respond(replicateError(422, "no", { invalid_fields: [field] }));
    expect(await errorOf(provider.generate(call("images", { ...fox, n: 4 })))).toMatchObject({ param: "n" });
    const fal = await startFal();
    for (const loc of [["num_images"], ["image_size", "width"]])
      fal.mock.respond(falError(422, "x", "no", { loc: ["body", ...loc] }));
    const asked = fal.call("images", { ...fox, n: 2, size: "9x9" });
    expect(await errorOf(fal.provider.generate(asked))).toMatchObject({ param: "n" });
    expect(await errorOf(fal.provider.generate(asked))).toMatchObject({ param: "size.width" });
  });
});

describe("an output", () => {
  test.each([
    [3, 2],
    [1, 4],
  ])("of %i images, with %i requested: others are neither stored nor charged", async (count, n) => {
    const output = ["0.png", "1.png", "2.png"].slice(0, count);
    const { usage, stored } = await made("replicate", "images", { ...fox, num_outputs: n }, at(output));
    expect([usage, stored.length]).toEqual([{ image: Math.min(count, n) }, Math.min(count, n)]);
  });

  test("of which fal's filter blackened images is delivered without those", async () => {
    const images = [{ url: "0.png" }, { url: "1.png" }, { url: "2.png" }];
    const script = (...flags: boolean[]) => ({ output: { images, has_nsfw_concepts: flags } });
    const { usage, sent, stored } = await made("fal", "images", { ...fox, n: 3 }, script(false, true, false));
    expect([usage, stored.length, sent]).toEqual([{ image: 2 }, 2, { ...fox, num_images: 3 }]);
    const none = made("fal", "images", { ...fox, n: 3 }, script(true, true, true));
    expect(await errorOf(none)).toMatchObject({ kind: "refused", param: "prompt" });
  });

  test.each<[what: string, output: unknown, rest: JsonObject]>([
    ["an address", "0.mp4", {}],
    ["a list of one", ["0.mp4"], {}],
    ["an object", { video: "0.mp4", seed: 3 }, { seed: 3 }],
    ["an object deep inside", { result: { clip: { url: "0.mp4", width: 8 } }, seed: 3 }, { seed: 3 }],
    ["the answer itself", `data:video/mp4;base64,${mockMp4.toString("base64")}`, {}],
  ])("has its file in %s, and what is no file goes to the caller", async (_, output, rest) => {
    const { usage, stored, output: given } = await made("replicate", "video", { ...fox, duration: 8 }, at(output));
    expect([given, usage]).toEqual([rest, { second: 8 }]);
    expect(stored.map(({ bytes }) => bytes.equals(mockMp4))).toEqual([true]);
  });

  const billed = (seconds: number) => at("0.mp4", { metrics: { video_output_duration_seconds: seconds } });
  const film = (video: object = {}) => ({ output: { video: { url: "0.mp4", content_type: "video/mp4", ...video } } });
  const sound = { output: { audio: { url: "0.mp3" } } };
  test.each<["replicate" | "fal", Task, input: JsonObject, answer: object, usage: object]>([
    ["replicate", "video", { duration: 8 }, billed(5), { second: 5 }],
    ["replicate", "video", { duration: "6s" }, billed(9.5), { second: 6 }],
    ["replicate", "video", { seconds: "4" }, at("0.mp4"), { second: 4 }],
    ["replicate", "video", {}, billed(7.25), { second: 7.25 }],
    ["replicate", "speech", { text: "Grüße 🦊", voice_id: "v" }, at("0.mp3"), { character: 7 }],
    ["fal", "video", { ...fox, duration: "8s" }, film(), { second: 8 }],
    ["fal", "video", { ...fox, duration: "auto" }, film({ duration: 5.5 }), { second: 5.5 }],
    ["fal", "speech", { prompt: "Hi 🦊", voice_setting: {} }, sound, { character: 4 }],
    ["fal", "music", { prompt: "a waltz", music_length_ms: 30_500 }, sound, { request: 1 }],
  ])("of %s for %s with %j is counted", async (name, task, input, answer, usage) => {
    const call = await made(name, task, input, answer);
    expect([call.usage, call.stored.length]).toEqual([usage, 1]);
  });

  test("of unreported length is measured, and fails if it cannot be", async () => {
    const { mock, clock, provider, stored, call } = await startReplicate();
    const wav = wavOf(2.5);
    mock.respond(at("0.mp4"), { headers: { "content-type": "audio/wav" }, body: wav }, at("0.mp4"));
    expect((await provider.generate(call("video", fox))).usage).toEqual({ second: 2.5 });
    expect(stored.map(({ bytes }) => bytes.equals(wav))).toEqual([true]);
    const failure = errorOf(provider.generate(call("video", fox)));
    await clock.pass(2_000, 2_000);
    expect(await failure).toMatchObject({ kind: "unavailable" });
    expect(stored).toHaveLength(1);
  });

  test("that is a transcript counts the measured minutes of the recording, and has no file", async () => {
    const uploads = uploadsOf([{ id: "upl_1", param: "input.audio", mime: "audio/wav", content: wavOf(90) }]);
    const text = { text: "https://fox.example", segments: [{ start: 0 }] };
    const transcribed = (output: unknown) =>
      made("replicate", "transcription", { audio: "upl_1" }, at(output), { uploads });
    expect(await transcribed(text)).toMatchObject({ output: text, usage: { minute: 1.5 }, stored: [] });
    expect((await transcribed(["The ", "fox."])).output).toEqual({ text: "The fox." });
  });
});

describe("the files of an output", () => {
  const gone = { status: 404, body: "gone" };

  test("that cannot be fetched are not counted", async () => {
    const { mock, clock, provider, stored, call } = await startReplicate();
    mock.respond({ states: ["succeeded"] }, {}, gone, gone, gone);
    const making = provider.generate(call("images", { ...fox, n: 2 }));
    await clock.pass(2_000, 2_000);
    expect((await making).usage).toEqual({ image: 1 });
    expect(stored).toEqual([{ bytes: mockPng, about: {} }]);
  });

  const page = { headers: { "content-type": "text/html" }, body: "<html>" };
  test.each([
    ["a page", "video", at("0.mp4"), [page, page, page], "text"],
    ["at a private address", "images", at(["http://127.0.0.1:9/a.png"]), [], "public"],
  ] as const)("that are %s fail the call", async (_, task, script, answers, message) => {
    const { mock, clock, provider, stored, call } = await startReplicate();
    mock.respond(script, ...answers);
    const failure = errorOf(provider.generate(call(task, { ...fox, duration: 4 })));
    await clock.pass(2_000, 2_000);
    expect(await failure).toMatchObject({ kind: "unavailable", message: expect.stringContaining(message) as string });
    expect(stored).toEqual([]);
  });
});

test("a poll that is put off in Replicate's words is", async () => {
  const { mock, clock, provider, call } = await startReplicate();
  mock.respond({}, replicateError(429, "Request was throttled. Your rate limit resets in ~20s."));
  const making = provider.generate(call("images", fox));
  await clock.pass(2_000, 20_000);
  expect((await making).usage).toEqual({ image: 1 });
});

test("a result of fal that cannot be fetched is requested again", async () => {
  const { mock, clock, provider, stored, call } = await startFal();
  mock.respond({}, {}, { cutAfter: -1 }, { status: 502, body: "bad gateway" });
  const making = provider.generate(call("images", fox));
  await clock.pass(2_000, 2_000, 2_000);
  await making;
  expect([mock.requests.length, stored.length]).toEqual([6, 1]);
});

test("a caller who disconnects during the submission closes that connection: nothing is sent again", async () => {
  const { mock, provider, call } = await startReplicate({ concurrency: 1 });
  mock.respond({ beforeHeaders: new Promise(() => {}) });
  const caller = new AbortController();
  const answer = errorOf(provider.generate(call("video", fox, { signal: caller.signal })));
  const submission = await mock.request(0);
  caller.abort(new Error("disconnected"));
  await answer;
  await submission.closed;
  expect([submission.aborted, mock.requests.length]).toEqual([true, 1]);
});
