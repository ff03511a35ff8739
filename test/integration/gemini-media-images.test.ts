import { describe, expect, test } from "vitest";
import type { JsonObject } from "#json";
import { noCapacity } from "../../shared/errors.ts";
import { startGemini } from "../support/gemini-setup.ts";
import { uploadsOf } from "../support/media-calls-setup.ts";
import { mockGeminiError, mockRetryInfo } from "../support/mock-gemini.ts";
import { mockPng } from "../support/mock-openai-media.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const fox = { prompt: "a fox" };
const inline = (bytes: Buffer, more: object = {}) => ({
  inlineData: { mimeType: "image/png", data: bytes.toString("base64") },
  ...more,
});

describe("images", () => {
  test("one is requested by its prompt, and stored unchanged", async () => {
    const { mock, provider, stored, media } = await startGemini();
    const made = await provider.generate(media("images", { ...fox, quality: "low", output_format: "png" }));
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

  test.each<[JsonObject, JsonObject | undefined]>([
    [{ aspect_ratio: "16:9" }, { aspectRatio: "16:9" }],
    [{ resolution: "4K" }, { imageSize: "4K" }],
    [
      { resolution: "512", aspect_ratio: "8:1" },
      { imageSize: "512", aspectRatio: "8:1" },
    ],
    [{ resolution: "1K" }, undefined],
    [{ size: "1024x1024" }, { aspectRatio: "1:1" }],
    [{ size: "1536x1024" }, { aspectRatio: "3:2" }],
    [{ size: "864x1184" }, { aspectRatio: "3:4" }],
    [{ size: "1536x672" }, { aspectRatio: "21:9" }],
    [{ size: "512x512" }, { aspectRatio: "1:1", imageSize: "512" }],
    [{ size: "2048x2048" }, { aspectRatio: "1:1", imageSize: "2K" }],
    [{ size: "3840x2160" }, { aspectRatio: "16:9", imageSize: "2K" }],
    [{ size: "5504x3072" }, { aspectRatio: "16:9", imageSize: "4K" }],
    [{ size: "2048x2048", resolution: "1K", aspect_ratio: "1:4" }, { aspectRatio: "1:4" }],
  ])("%j asks for %j", async (input, imageConfig) => {
    const { mock, provider, media } = await startGemini();
    await provider.generate(media("images", { ...fox, ...input }));
    expect(mock.requests[0]?.body["generationConfig"]).toEqual({
      responseModalities: ["IMAGE"],
      ...(imageConfig && { imageConfig }),
    });
  });

  test("the thinking level goes in the provider's spelling", async () => {
    const { mock, provider, media } = await startGemini();
    await provider.generate(media("images", { ...fox, thinking_level: "minimal" }));
    expect(mock.requests[0]?.body["generationConfig"]).toEqual({
      responseModalities: ["IMAGE"],
      thinkingConfig: { thinkingLevel: "MINIMAL" },
    });
  });

  test.each(["1000x300", "0x0", "wide", "1x99999"])("a size that no ratio fits (%s) is refused", async (size) => {
    const { mock, provider, media } = await startGemini();
    const failure = await errorOf(provider.generate(media("images", { ...fox, size })));
    expect(failure).toMatchObject({ kind: "refused", param: "size" });
    expect(mock.requests).toEqual([]);
  });

  test("input images are sent in their order, before the prompt", async () => {
    const { mock, provider, media } = await startGemini();
    const uploads = uploadsOf([
      { id: "upl_1", param: "image", mime: "image/png", content: mockPng },
      { id: "upl_2", param: "image", mime: "image/webp", content: Buffer.from("two") },
    ]);
    await provider.generate(media("images", { ...fox, image: ["upl_2", "upl_1"] }, { uploads }));
    expect(mock.requests[0]?.body).toMatchObject({
      contents: [
        {
          role: "user",
          parts: [
            { inlineData: { mimeType: "image/webp", data: Buffer.from("two").toString("base64") } },
            { inlineData: { mimeType: "image/png", data: mockPng.toString("base64") } },
            { text: "a fox" },
          ],
        },
      ],
    });
  });

  const megabyte = 1024 * 1024;
  const file = (number: number, content: Buffer | number, mime = "image/png", param = "image") =>
    ({ id: `upl_${number}`, param, mime, content }) as const;
  test.each([
    ["no prompt", { prompt: "" }, [], "prompt"],
    ["a link", { image: "https://example.com/a.png" }, [], "image"],
    ["an object", { image: [{ url: "upl_1" }] }, [file(1, mockPng)], "image"],
    ["a kind that the provider does not read", { image: "upl_1" }, [file(1, mockPng, "image/gif")], "image"],
    ["a film", { image: "upl_1" }, [file(1, mockPng, "video/mp4")], "image"],
    ["an upload in another field", { mask: "upl_1" }, [file(1, mockPng, "image/png", "mask")], "mask"],
    ["too many", { image: Array.from({ length: 15 }, () => "upl_1") }, [file(1, mockPng)], "image"],
    ["too large a one", { image: "upl_1" }, [file(1, 65 * megabyte)], "image"],
  ])("%s is refused, and nothing is asked for", async (_, input, files, param) => {
    const { mock, provider, media } = await startGemini();
    const failure = await errorOf(
      provider.generate(media("images", { ...fox, ...input }, { uploads: uploadsOf(files) })),
    );
    expect(failure).toMatchObject({ kind: "refused", param });
    expect(mock.requests).toEqual([]);
  });

  test("input images that are too large together are refused before the last is read", async () => {
    const { mock, provider, media } = await startGemini();
    const uploads = uploadsOf([file(1, Buffer.alloc(40 * megabyte)), file(2, 30 * megabyte)]);
    const failure = await errorOf(
      provider.generate(media("images", { ...fox, image: ["upl_1", "upl_2"] }, { uploads })),
    );
    expect(failure).toMatchObject({ kind: "refused", param: "image" });
    expect(mock.requests).toEqual([]);
  });
});

describe("several images", () => {
  test("are as many calls, each for one, even if an answer has more", async () => {
    const { mock, provider, stored, media } = await startGemini();
    const draft = inline(Buffer.from("a draft"), { thought: true });
    mock.always({ parts: [draft, { text: "Here:" }, inline(mockPng), inline(Buffer.from("another"))] });
    expect(await provider.generate(media("images", { ...fox, n: 3 }))).toEqual({ output: {}, usage: { image: 3 } });
    expect(stored.map(({ bytes }) => bytes)).toEqual([mockPng, mockPng, mockPng]);
    expect(mock.requests).toHaveLength(3);
  });

  test("are fewer where some are withheld or fail, and only the delivered ones count", async () => {
    const { mock, provider, stored, media } = await startGemini();
    mock.respond({ parts: [], finishReason: "IMAGE_SAFETY" }, {}, mockGeminiError(503, "overloaded"), {});
    expect((await provider.generate(media("images", { ...fox, n: 4 }))).usage).toEqual({ image: 2 });
    expect(stored).toHaveLength(2);
  });

  test("fail as the first did if all fail", async () => {
    const { mock, provider, media } = await startGemini({ concurrency: 1 });
    const details = [mockRetryInfo("5s")];
    mock.respond(mockGeminiError(429, "full", { details }), mockGeminiError(503, "down"));
    expect(await errorOf(provider.generate(media("images", { ...fox, n: 2 })))).toMatchObject({
      kind: "busy",
      retryAfterMs: 5_000,
    });
  });

  test("fail if storage fails for one", async () => {
    const { provider, media } = await startGemini();
    const error = noCapacity("Storage is unavailable.");
    let files = 0;
    const store = () => (files++ === 0 ? Promise.resolve() : Promise.reject(error));
    expect(await errorOf(provider.generate(media("images", { ...fox, n: 2 }, { store })))).toBe(error);
  });
});

describe("no image", () => {
  test.each([
    [
      "the prompt is blocked",
      { blockReason: "PROHIBITED_CONTENT" },
      "refused",
      "The prompt was blocked: PROHIBITED_CONTENT.",
    ],
    [
      "the image is withheld",
      { parts: [], finishReason: "IMAGE_SAFETY" },
      "refused",
      "The model made no image: IMAGE_SAFETY.",
    ],
    [
      "it is another's work",
      { parts: [], finishReason: "IMAGE_RECITATION" },
      "refused",
      "The model made no image: IMAGE_RECITATION.",
    ],
    [
      "the model made none",
      { text: "No.", parts: [{ text: "I cannot." }], finishReason: "NO_IMAGE" },
      "refused",
      "The model made no image: NO_IMAGE. I cannot.",
    ],
    [
      "the model said something",
      { parts: [{ text: "I can " }, { text: "not." }] },
      "refused",
      "The model made no image. I can not.",
    ],
    ["it broke", { parts: [], finishReason: "IMAGE_OTHER" }, "unavailable", "an answer without image (IMAGE_OTHER)"],
    [
      "there is but a draft",
      { parts: [inline(mockPng, { thought: true })] },
      "unavailable",
      "an answer without image (STOP)",
    ],
    ["it is sound", { parts: [{ inlineData: { mimeType: "audio/wav", data: "AAAA" } }] }, "unavailable", undefined],
    ["it is empty", { parts: [{ inlineData: { mimeType: "image/png", data: "" } }] }, "unavailable", undefined],
    [
      "nothing fits",
      { parts: [null, 7, {}, { inlineData: "x" }, { inlineData: { data: 7 } }] as object[] },
      "unavailable",
      undefined,
    ],
  ])("because %s", async (_, answer, kind, message) => {
    const { mock, provider, stored, media } = await startGemini();
    mock.respond(answer as object);
    const failure = await errorOf(provider.generate(media("images", fox)));
    expect(failure).toMatchObject({ kind, ...(message !== undefined && { message }) });
    expect(stored).toEqual([]);
  });

  test("the provider's explanation is shown, up to a limit", async () => {
    const { mock, provider, media } = await startGemini();
    const finishMessage = `Unable to show the image.${"x".repeat(5_000)}`;
    mock.respond({ body: { candidates: [{ finishReason: "PROHIBITED_CONTENT", finishMessage }] } });
    const failure = (await errorOf(provider.generate(media("images", fox)))) as Error;
    expect(failure.message).toMatch(/^The model made no image: PROHIBITED_CONTENT\. Unable to show the image\./);
    expect(failure.message.length).toBeLessThan(600);
  });

  test("a disconnected caller frees the connections", async () => {
    const { mock, provider, media } = await startGemini();
    mock.always({ beforeHeaders: new Promise(() => {}) });
    const caller = new AbortController();
    const answer = errorOf(provider.generate(media("images", { ...fox, n: 2 }, { signal: caller.signal })));
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

test.each(["music", "transcription"] as const)("%s is not supported", async (task) => {
  const { provider, media } = await startGemini();
  expect(await errorOf(provider.generate(media(task, {})))).toMatchObject({ kind: "misconfigured" });
});
