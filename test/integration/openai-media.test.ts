import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "#json";
import { noCapacity } from "../../shared/errors.ts";
import { leave, letGo } from "../support/disconnecting.ts";
import { wavOf } from "../support/generation-setup.ts";
import { uploadsOf } from "../support/media-calls-setup.ts";
import { mockMp3, mockPng, mockRecordingSeconds, mockTranscript } from "../support/mock-openai-media.ts";
import { startOpenai } from "../support/provider-setup.ts";
import { errorOf, gate } from "../support/upstreams-setup.ts";

const cat = { prompt: "a cat" };
const base64 = (bytes: Buffer) => ({ b64_json: bytes.toString("base64") });
const never = new Promise<never>(() => {});
const png = (id: string, content: Buffer | number, param = "image") => ({ id, param, mime: "image/png", content });
const text = (name: string, value: string) => ({ name, bytes: Buffer.from(value) });
const part = (name: string, filename: string, type: string, bytes: Buffer) => ({ name, filename, type, bytes });

describe("images", () => {
  test("the model's parameters are sent unchanged; fields that change the shape of the answer are not", async () => {
    const { mock, provider, stored, call } = await startOpenai();
    const input = { ...cat, n: 2, size: "1536x864", quality: "low", output_format: "webp", moderation: "low", x: [1] };
    const extra = { response_format: "b64_json", stream: true, partial_images: 2, model: "another" };
    const made = await provider.generate(call("images", { ...input, ...extra }));
    const [request] = mock.requests;
    expect(request).toMatchObject({ method: "POST", path: "/v1/images/generations" });
    expect(request?.body).toEqual({ ...input, model: "provider-model" });
    expect(request?.headers).toMatchObject({ authorization: "Bearer sk-operator", "content-type": "application/json" });
    expect(stored).toEqual(Array(2).fill({ bytes: mockPng, about: {} }));
    expect(made).toEqual({
      output: {
        created: 1_700_000_000,
        background: "opaque",
        output_format: "png",
        quality: "low",
        size: "1024x1024",
        usage: expect.objectContaining({ total_tokens: 552 }) as unknown,
      },
      usage: { image: 2 },
    });
  });

  test.each([
    [2, 4, 2],
    [3, 2, 2],
    [3, undefined, 1],
  ])("%i in an answer to %s are stored and charged as %i", async (answered, n, image) => {
    const { mock, provider, stored, call } = await startOpenai();
    mock.respond({ body: { data: Array(answered).fill(base64(mockPng)) } });
    expect((await provider.generate(call("images", { ...cat, ...(n && { n }) }))).usage).toEqual({ image });
    expect(stored).toHaveLength(image);
  });

  test("a revised prompt is stored with its image", async () => {
    const { mock, provider, stored, call } = await startOpenai();
    const revised_prompt = 'eine "Katze" \\ "b64_json": "AAAA" 猫';
    const none = { revised_prompt: "of none", b64_json: null };
    mock.respond({ body: { data: [none, { revised_prompt, ...base64(mockPng) }, base64(mockPng)] } });
    await provider.generate(call("images", { ...cat, n: 3 }));
    expect(stored.map(({ about }) => about)).toEqual([{ revised_prompt }, {}]);
  });

  test("large images are stored unchanged", async () => {
    const { mock, provider, stored, call } = await startOpenai();
    const images = Array.from({ length: 4 }, (_, i) => randomBytes(3_000_000 + i));
    mock.respond({ body: { created: 1, data: images.map(base64) } });
    await provider.generate(call("images", { ...cat, n: 4 }));
    expect(stored.map(({ bytes }, i) => bytes.equals(images[i] as Buffer))).toEqual([true, true, true, true]);
  });

  test("a failure of storage is not the provider's", async () => {
    const { provider, call } = await startOpenai();
    const error = noCapacity("Storage is unavailable.");
    let files = 0;
    const store = () => (files++ === 0 ? Promise.resolve() : Promise.reject(error));
    expect(await errorOf(provider.generate(call("images", { ...cat, n: 2 }, { store })))).toBe(error);
  });

  test("images and mask are sent as an exact form", async () => {
    const { mock, provider, stored, call } = await startOpenai();
    const [first, second, mask] = [randomBytes(70_000), Buffer.from("\r\n--form\r\n"), randomBytes(10)];
    const uploads = uploadsOf([
      png("upl_1", first, "image[0]"),
      { ...png("upl_2", second, "image[1]"), mime: "image/jpeg" },
      png("upl_3", mask, "mask"),
    ]);
    const fields = { mask: "upl_3", n: 2, size: "1024x1024", x: { y: true } };
    const input = { prompt: "Grüße\r\n--", image: ["upl_1", "upl_2"], ...fields };
    const { usage } = await provider.generate(call("images", { ...input, response_format: "url" }, { uploads }));
    const [request] = mock.requests;
    expect(request).toMatchObject({ method: "POST", path: "/v1/images/edits" });
    expect(request?.headers["transfer-encoding"]).toBeUndefined();
    expect(Number(request?.headers["content-length"])).toBeGreaterThan(70_000);
    expect(request?.form).toEqual([
      text("prompt", input.prompt),
      part("image[]", "file-1.png", "image/png", first),
      part("image[]", "file-2.jpg", "image/jpeg", second),
      part("mask", "file-3.png", "image/png", mask),
      text("n", "2"),
      text("size", "1024x1024"),
      text("x[y]", "true"),
      text("model", "provider-model"),
    ]);
    expect([usage, stored.length]).toEqual([{ image: 2 }, 2]);
  });

  test("in a form, one image is not a list, and names and types are escaped", async () => {
    const { mock, provider, call } = await startOpenai();
    const uploads = uploadsOf([{ ...png("upl_1", mockPng), mime: 'image/x-odd"\r\nx: y; a=b' }]);
    const name = 'a"; filename="b.png"\r\n\r\nc';
    await provider.generate(call("images", { ...cat, [name]: "text", image: "upl_1" }, { uploads }));
    expect(mock.requests[0]?.form?.slice(1, 3)).toEqual([
      text("a%22; filename=%22b.png%22%0D%0A%0D%0Ac", "text"),
      part("image", "file-2.odd", "image/x-odd", mockPng),
    ]);
  });
});

const hello = { text: "Hello", voice: "alloy" };
const mp3 = { headers: { "content-type": "audio/mpeg" }, done: false as const };
type Body = Buffer | AsyncIterable<Buffer>;

describe("speech", () => {
  test.each<readonly [fields: JsonObject, sent: JsonObject]>([
    [
      { text: "Hi 👩‍👧 ü", format: "opus", stream_format: "sse" },
      { input: "Hi 👩‍👧 ü", response_format: "opus" },
    ],
    [
      { input: "Hi 👩‍👧 ü", response_format: "wav" },
      { input: "Hi 👩‍👧 ü", response_format: "wav" },
    ],
  ])(
    "%j goes under the provider's names, other fields unchanged; the audio is stored unchanged",
    async (fields, sent) => {
      const { mock, provider, stored, call } = await startOpenai();
      const input = { voice: "coral", speed: 1.5, instructions: "Whisper.", x: { y: 1 } };
      const made = await provider.generate(call("speech", { ...input, ...fields }));
      expect(mock.requests[0]).toMatchObject({ method: "POST", path: "/v1/audio/speech" });
      expect(mock.requests[0]?.body).toEqual({ ...input, ...sent, model: "provider-model" });
      expect(stored).toEqual([{ bytes: mockMp3, about: undefined }]);
      expect(made).toEqual({ output: {}, usage: { character: 8 } });
    },
  );

  test("is streamed, not collected", async () => {
    const { mock, provider, call } = await startOpenai();
    const rest = gate();
    mock.respond({ ...mp3, events: ["", "first", "second"], beforeEvent: { 2: rest.promise } });
    const pieces: string[] = [];
    const store = async (body: Body) => {
      for await (const piece of body as AsyncIterable<Buffer>) {
        pieces.push(piece.toString());
        rest.resolve();
      }
    };
    await provider.generate(call("speech", hello, { store }));
    expect(pieces).toEqual(["first", "second"]);
  });

  test("that breaks off is the provider's failure, whatever error storage throws", async () => {
    const { mock, provider, call } = await startOpenai();
    mock.respond({ ...mp3, events: ["one", "two"], cutAfter: 1 });
    const store = async (body: Body) => {
      await Array.fromAsync(body as AsyncIterable<Buffer>).catch(() => {
        throw noCapacity("Storage is unavailable.");
      });
    };
    expect(await errorOf(provider.generate(call("speech", hello, { store })))).toMatchObject({ kind: "unavailable" });
  });

  test.each(["before it reads", "in the middle"])(
    "storage that fails %s is no failure of the provider, and lets go of it",
    async (when) => {
      const { mock, provider, call } = await startOpenai({ concurrency: 1 });
      const piece = Buffer.alloc(256 * 1024);
      mock.respond({ ...mp3, events: [piece, piece], beforeEvent: { 1: never } });
      const error = noCapacity("Storage is unavailable.");
      const store = async (body: Body) => {
        if (when === "in the middle") for await (const _ of body as AsyncIterable<Buffer>) throw error;
        throw error;
      };
      expect(await errorOf(provider.generate(call("speech", hello, { store })))).toBe(error);
      const request = await mock.request(0);
      await request.closed;
      expect(request.aborted).toBe(true);
    },
  );
});

const recording = (content: Buffer | number = wavOf(1.5), mime = "audio/wav") =>
  uploadsOf([{ id: "upl_1", param: "input.file", mime, content }]);

describe("a transcription", () => {
  test("sends the recording as an exact form, with the model's own parameters", async () => {
    const { mock, provider, stored, call } = await startOpenai();
    const content = wavOf(0.1);
    const fields = { language: "en", prompt: "Names", temperature: 0.2, include: ["logprobs"], stream: true };
    const input = { file: "upl_1", ...fields, format: "json", chunking_strategy: { type: "server_vad" } };
    const made = await provider.generate(call("transcription", input, { uploads: recording(content) }));
    const [request] = mock.requests;
    expect(request).toMatchObject({ method: "POST", path: "/v1/audio/transcriptions" });
    expect(request?.form).toEqual([
      part("file", "file-0.wav", "audio/wav", content),
      text("language", "en"),
      text("prompt", "Names"),
      text("temperature", "0.2"),
      text("include[]", "logprobs"),
      text("chunking_strategy[type]", "server_vad"),
      text("response_format", "json"),
      text("model", "provider-model"),
    ]);
    expect(made).toEqual({
      output: { text: mockTranscript, usage: { type: "duration", seconds: mockRecordingSeconds } },
      usage: { minute: 0.15 },
    });
    expect(stored).toEqual([]);
  });

  test.each([
    ["audio/mpeg", "mp3"],
    ["audio/x-m4a", "m4a"],
    ["audio/mp4", "m4a"],
    ["audio/ogg; codecs=opus", "ogg"],
    ["audio/flac", "flac"],
    ["audio/x-wav", "wav"],
    ["video/webm", "webm"],
    ["video/mp4", "mp4"],
  ])("has a file name with the format's extension: %s is .%s", async (mime, ending) => {
    const { mock, provider, call } = await startOpenai();
    await provider.generate(call("transcription", { file: "upl_1" }, { uploads: recording(undefined, mime) }));
    expect(mock.requests[0]?.form?.[0]).toMatchObject({ filename: `file-0.${ending}`, type: mime.split(";")[0] });
  });

  test.each(["text", "srt", "vtt"])("as %s is the text", async (format) => {
    const { provider, call } = await startOpenai();
    const made = await provider.generate(call("transcription", { file: "upl_1", format }, { uploads: recording() }));
    expect(made).toEqual({ output: { text: `${mockTranscript}\n` }, usage: { minute: 0.025 } });
  });

  test.each([
    ["as the provider billed it", { usage: { type: "duration", seconds: 7 }, duration: 6.4 }, 0.116667],
    ["as the provider measured it", { usage: { type: "tokens", total_tokens: 5 }, duration: 6.5 }, 0.108333],
    ["as another provider billed it", { usage: { prompt_audio_seconds: 3, prompt_tokens: 4 } }, 0.05],
    ["as the provider measured it, in a text", { duration: "90.0" }, 1.5],
    ["as it is measured here, where none is told", { usage: { type: "tokens" } }, 0.025],
    ["as it is measured here, instead of nonsense", { duration: -3, usage: { type: "duration", seconds: 0 } }, 0.025],
  ])("has a length %s", async (_, reported, minute) => {
    const { mock, provider, call } = await startOpenai();
    mock.respond({ body: { text: "", ...reported } });
    const { usage } = await provider.generate(call("transcription", { file: "upl_1" }, { uploads: recording() }));
    expect(usage).toEqual({ minute });
  });
});

describe("a video", () => {
  test.each(["image", "input_reference"])("from a first image (%s) is sent as a form", async (field) => {
    const { mock, clock, provider, call } = await startOpenai();
    const uploads = uploadsOf([png("upl_1", mockPng, `input.${field}`)]);
    const made = provider.generate(call("video", { prompt: "a fox", seconds: 4, [field]: "upl_1" }, { uploads }));
    await clock.pass(2_000);
    await made;
    expect(mock.requests[0]?.form).toEqual([
      text("prompt", "a fox"),
      text("seconds", "4"),
      part("input_reference", "file-2.png", "image/png", mockPng),
      text("model", "provider-model"),
    ]);
  });

  test("has its fields under the provider's names; the rest is unchanged", async () => {
    const { mock, clock, provider, call } = await startOpenai();
    const fields = { prompt: "a fox", style: "noir", n: 1 };
    const made = provider.generate(call("video", { ...fields, duration: 4, resolution: "720x1280" }));
    await clock.pass(2_000);
    const times = { created_at: 1_700_000_000, completed_at: 1_700_000_060 };
    expect(await made).toEqual({ output: { ...times, seconds: "4", size: "720x1280" }, usage: { second: 4 } });
    expect(mock.requests[0]?.body).toEqual({ ...fields, seconds: "4", size: "720x1280", model: "provider-model" });
  });

  test.each<readonly [what: string, reported: object, asked: JsonObject, second: number]>([
    ["a shorter video counts as it is", { seconds: "5" }, { seconds: "8" }, 5],
    ["a longer one as it was asked for", { seconds: 12 }, { seconds: "8" }, 8],
    ["one of untold length as it was asked for", {}, { seconds: "8" }, 8],
    ["without a wish as the provider tells", { seconds: "4" }, {}, 4],
  ])("that is done before the first poll: %s", async (_, reported, asked, second) => {
    const { mock, provider, call } = await startOpenai();
    mock.respond(
      { body: { id: "a/../b?c", status: "completed", ...reported } },
      { body: "video", headers: { "content-type": "video/mp4" } },
    );
    expect((await provider.generate(call("video", { prompt: "a fox", ...asked }))).usage).toEqual({ second });
    expect(mock.requests[1]?.path).toBe("/v1/videos/a%2F..%2Fb%3Fc/content");
  });
});

const half = JSON.stringify({ data: [base64(mockPng)] }).slice(0, 60);
const large = { uploads: recording(Buffer.alloc(20 * 1024 * 1024)) };
test.each([
  ["in the middle of images", "images", cat, { events: [half, "rest"], beforeEvent: { 1: never } }, {}],
  ["in the middle of speech", "speech", hello, { ...mp3, events: ["one", "two"], beforeEvent: { 1: never } }, {}],
  ["while a large form is sent", "transcription", { file: "upl_1" }, { beforeHeaders: never }, large],
] as const)("a caller who disconnects %s frees the connection", async (_, task, input, answer, more) => {
  const { mock, provider, call } = await startOpenai({ concurrency: 1 });
  mock.respond(answer);
  expect(await leave(mock, (signal) => provider.generate(call(task, input, { ...more, signal })))).toEqual(letGo);
  await provider.generate(call("images", cat));
});
