import { describe, expect, test } from "vitest";
import type { JsonObject } from "#json";
import { noCapacity } from "../../shared/errors.ts";
import { secondsOf } from "../../workers/counting/recording-length.ts";
import { uploadsOf } from "../support/media-calls-setup.ts";
import { mockGeminiError, mockRetryInfo } from "../support/mock-gemini.ts";
import { mockPcm } from "../support/mock-gemini-content.ts";
import { mockMp4, mockPng } from "../support/mock-openai-media.ts";
import { googleKey, startGemini } from "../support/provider-setup.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const fox = { prompt: "a fox" };
const inline = (bytes: Buffer, more: object = {}, mimeType = "image/png") => ({
  inlineData: { mimeType, data: bytes.toString("base64") },
  ...more,
});
const imageUpload = (number: number, param: string, content = mockPng, mime = "image/png") => ({
  id: `upl_${number}`,
  param,
  mime,
  content,
});

describe("images", () => {
  test("one is requested by its prompt, and stored unchanged", async () => {
    const { mock, provider, stored, call } = await startGemini();
    const made = await provider.generate(call("images", { ...fox, quality: "low", output_format: "png" }));
    expect(made).toEqual({ output: {}, usage: { image: 1 } });
    expect(stored).toEqual([{ bytes: mockPng, about: undefined }]);
    expect(mock.requests).toHaveLength(1);
    expect(mock.requests[0]).toMatchObject({ method: "POST", path: "/v1beta/models/gemini-mock:generateContent" });
    expect(mock.requests[0]?.body).toEqual({
      contents: [{ role: "user", parts: [{ text: "a fox" }] }],
      generationConfig: { responseModalities: ["IMAGE"] },
      store: false,
    });
  });

  const imageConfig = (aspectRatio?: string, imageSize?: string) => ({
    imageConfig: { ...(aspectRatio && { aspectRatio }), ...(imageSize && { imageSize }) },
  });
  test.each<[JsonObject, JsonObject]>([
    [{ aspect_ratio: "16:9" }, imageConfig("16:9")],
    [{ resolution: "4K" }, imageConfig(undefined, "4K")],
    [{ resolution: "512", aspect_ratio: "8:1" }, imageConfig("8:1", "512")],
    [{ resolution: "1K" }, {}],
    [{ size: "1024x1024" }, imageConfig("1:1")],
    [{ size: "1536x1024" }, imageConfig("3:2")],
    [{ size: "864x1184" }, imageConfig("3:4")],
    [{ size: "1536x672" }, imageConfig("21:9")],
    [{ size: "512x512" }, imageConfig("1:1", "512")],
    [{ size: "2048x2048" }, imageConfig("1:1", "2K")],
    [{ size: "3840x2160" }, imageConfig("16:9", "2K")],
    [{ size: "5504x3072" }, imageConfig("16:9", "4K")],
    [{ size: "2048x2048", resolution: "1K", aspect_ratio: "1:4" }, imageConfig("1:4")],
    [{ thinking_level: "minimal" }, { thinkingConfig: { thinkingLevel: "MINIMAL" } }],
  ])("%j asks for %j", async (input, config) => {
    const { mock, provider, call } = await startGemini();
    await provider.generate(call("images", { ...fox, ...input }));
    expect(mock.requests[0]?.body["generationConfig"]).toEqual({ responseModalities: ["IMAGE"], ...config });
  });

  test("input images are sent in their order, before the prompt", async () => {
    const { mock, provider, call } = await startGemini();
    const two = Buffer.from("two");
    const uploads = uploadsOf([imageUpload(1, "image"), imageUpload(2, "image", two, "image/webp")]);
    await provider.generate(call("images", { ...fox, image: ["upl_2", "upl_1"] }, { uploads }));
    const parts = [inline(two, {}, "image/webp"), inline(mockPng), { text: "a fox" }];
    expect(mock.requests[0]?.body["contents"]).toEqual([{ role: "user", parts }]);
  });

  test("several are as many calls, each for one, even if an answer has more", async () => {
    const { mock, provider, stored, call } = await startGemini();
    const draft = inline(Buffer.from("a draft"), { thought: true });
    mock.always({ parts: [draft, { text: "Here:" }, inline(mockPng), inline(Buffer.from("another"))] });
    expect(await provider.generate(call("images", { ...fox, n: 3 }))).toEqual({ output: {}, usage: { image: 3 } });
    expect(stored.map(({ bytes }) => bytes)).toEqual([mockPng, mockPng, mockPng]);
    expect(mock.requests).toHaveLength(3);
  });

  test("several are fewer where some are withheld or fail, and only the delivered ones count", async () => {
    const { mock, provider, stored, call } = await startGemini();
    mock.respond({ parts: [], finishReason: "IMAGE_SAFETY" }, {}, mockGeminiError(503, "overloaded"), {});
    expect((await provider.generate(call("images", { ...fox, n: 4 }))).usage).toEqual({ image: 2 });
    expect(stored).toHaveLength(2);
  });

  test("several fail as the first did if all fail, and if storage fails for one", async () => {
    const { mock, provider, call } = await startGemini({ concurrency: 1 });
    const details = [mockRetryInfo("5s")];
    mock.respond(mockGeminiError(429, "full", { details }), mockGeminiError(503, "down"));
    const two = { ...fox, n: 2 };
    expect(await errorOf(provider.generate(call("images", two)))).toMatchObject({ kind: "busy", retryAfterMs: 5_000 });
    const error = noCapacity("Storage is unavailable.");
    let files = 0;
    const store = () => (files++ === 0 ? Promise.resolve() : Promise.reject(error));
    expect(await errorOf(provider.generate(call("images", two, { store })))).toBe(error);
  });

  test("without one, the provider's explanation is shown, up to a limit", async () => {
    const { mock, provider, call } = await startGemini();
    const finishMessage = `Unable to show the image.${"x".repeat(5_000)}`;
    mock.respond({ body: { candidates: [{ finishReason: "PROHIBITED_CONTENT", finishMessage }] } });
    const failure = (await errorOf(provider.generate(call("images", fox)))) as Error;
    expect(failure.message).toMatch(/^The model made no image: PROHIBITED_CONTENT\. Unable to show the image\./);
    expect(failure.message.length).toBeLessThan(600);
  });

  test("a disconnected caller frees the connections", async () => {
    const { mock, provider, call } = await startGemini();
    mock.always({ beforeHeaders: new Promise(() => {}) });
    const caller = new AbortController();
    const answer = errorOf(provider.generate(call("images", { ...fox, n: 2 }, { signal: caller.signal })));
    const requests = [await mock.request(0), await mock.request(1)];
    const reason = new Error("disconnected");
    caller.abort(reason);
    expect(await answer).toBe(reason);
    for (const request of requests) {
      await request.closed;
      expect(request.aborted).toBe(true);
    }
  });
});

describe("speech", () => {
  test("becomes a WAV file of its samples; each character counts", async () => {
    const { mock, provider, stored, call } = await startGemini();
    const made = await provider.generate(call("speech", { text: "Héllo 🦊", voice: "Puck", format: "wav" }));
    expect(made).toEqual({ output: {}, usage: { character: 7 } });
    const [file] = stored;
    expect(await secondsOf(file?.bytes ?? Buffer.alloc(0), "audio/wav")).toBe(0.1);
    expect(file?.bytes.subarray(44).equals(mockPcm)).toBe(true);
    expect(file?.bytes.readUInt32LE(24)).toBe(24_000);
    expect(mock.requests[0]?.body).toEqual({
      contents: [{ role: "user", parts: [{ text: "Héllo 🦊" }] }],
      generationConfig: {
        responseModalities: ["AUDIO"],
        speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: "Puck" } } },
      },
      store: false,
    });
  });

  test.each([
    ["audio/L16;codec=pcm;rate=16000", 16_000],
    ["audio/pcm; rate=48000", 48_000],
    ["audio/wav", undefined],
  ])("of %s has the rate %s, or is stored unchanged; the voice is the provider's choice", async (mimeType, rate) => {
    const { mock, provider, stored, call } = await startGemini();
    mock.respond({ parts: [inline(mockPcm, {}, mimeType)] });
    await provider.generate(call("speech", { text: "Hello" }));
    const [{ bytes } = { bytes: Buffer.alloc(0) }] = stored;
    expect(bytes.equals(mockPcm) ? undefined : bytes.readUInt32LE(24)).toBe(rate);
    expect(mock.requests[0]?.body["generationConfig"]).toEqual({ responseModalities: ["AUDIO"] });
  });
});

describe("a video", () => {
  const film = { ...fox, duration: 8, resolution: "720p", aspect_ratio: "16:9" };

  test("is started in the background", async () => {
    const { mock, clock, provider, stored, call } = await startGemini();
    const made = provider.generate(call("video", { ...film, seed: 7, style: "noir" }));
    await clock.pass(2_000);
    expect(await made).toEqual({ output: {}, usage: { second: 8 } });
    expect(mock.requests[0]?.body).toEqual({
      model: "gemini-mock",
      input: [{ type: "text", text: "a fox" }],
      response_format: { type: "video", delivery: "uri", duration: "8s", aspect_ratio: "16:9", resolution: "720p" },
      generation_config: { video_config: { task: "text_to_video" }, seed: 7 },
      background: true,
      store: true,
    });
    expect(stored).toEqual([{ bytes: mockMp4, about: undefined }]);
  });

  test.each([
    [{ image: "upl_1" }, ["image"], "image_to_video"],
    [{ reference_images: ["upl_1", "upl_2"] }, ["reference_images", "reference_images"], "reference_to_video"],
  ])("from %j sends their bytes", async (input, params, task) => {
    const { mock, clock, provider, call } = await startGemini();
    const uploads = uploadsOf(params.map((param, index) => imageUpload(index + 1, `input.${param}`)));
    const made = provider.generate(call("video", { ...fox, duration: "5", ...input }, { uploads }));
    await clock.pass(2_000);
    expect((await made).usage).toEqual({ second: 5 });
    const image = { type: "image", data: mockPng.toString("base64"), mime_type: "image/png" };
    expect(mock.requests[0]?.body).toMatchObject({
      input: [...params.map(() => image), { type: "text", text: "a fox" }],
      response_format: { duration: "5s" },
      generation_config: { video_config: { task } },
    });
  });

  const made = (video: object) => {
    const content = [
      { type: "text", text: "Here." },
      { type: "video", ...video },
    ];
    return { body: { id: "v1_x", status: "completed", steps: [{ type: "model_output", content }] } };
  };

  test("inside the answer is stored", async () => {
    const { mock, provider, stored, call } = await startGemini();
    mock.respond(made({ data: mockMp4.toString("base64") }));
    await provider.generate(call("video", film));
    expect(stored).toEqual([{ bytes: mockMp4, about: undefined }]);
    expect(mock.requests).toHaveLength(1);
  });

  const download = "/v1beta/files/video1:download?alt=media";
  test.each([
    ["https://generativelanguage.googleapis.com/v1beta/files/video1:download?alt=media", download, googleKey],
    ["https://elsewhere.example/any/v1/files/video1:download", download, googleKey],
    ["/made/here.mp4", "/made/here.mp4", undefined],
  ])("at %s is fetched from %s; the key goes only to the operator's address", async (uri, path, key) => {
    const { mock, provider, stored, call } = await startGemini();
    const mp4 = { headers: { "content-type": "video/mp4" }, events: [mockMp4] };
    mock.respond(made({ uri: uri.startsWith("/") ? mock.url + uri : uri }), key === undefined ? mp4 : {});
    await provider.generate(call("video", film));
    expect(mock.requests[1]).toMatchObject({ method: "GET", path });
    expect(mock.requests[1]?.headers["x-goog-api-key"]).toBe(key);
    expect(stored).toEqual([{ bytes: mockMp4, about: undefined }]);
  });

  test.each(["http://127.0.0.1:1/x.mp4", "file:///etc/passwd", "gs://bucket/x.mp4", "nonsense"])(
    "at an address that is not public is not fetched: %s",
    async (uri) => {
      const { mock, clock, provider, stored, call } = await startGemini();
      mock.respond(made({ uri }));
      const failure = errorOf(provider.generate(call("video", film)));
      await clock.pass(2_000, 2_000);
      expect(await failure).toMatchObject({ kind: "unavailable" });
      expect(stored).toEqual([]);
    },
  );
});
