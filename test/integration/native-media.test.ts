import { toFile } from "openai";
import { describe, expect, test } from "vitest";
import { fileAt, type ImageAnswer, type MediaAnswer, paid, pngOf, uploaded } from "../support/generation-setup.ts";
import { mockMp3, mockMp4, mockPng } from "../support/mock-openai-media.ts";
import { asking, costOf, shipped } from "../support/native-media-prices.ts";
import { mediaServiceOfFile, posted } from "../support/native-media-setup.ts";
import { nanoUsd } from "../support/service-setup.ts";

const running = mediaServiceOfFile();

type Both = ImageAnswer & MediaAnswer;

/** A paid call of one shipped model. */
async function made(id: string, fields: object, { usd = "20", tier = "standard" as "standard" | "elite" } = {}) {
  const customer = await running.service.account(usd, { tier });
  const model = shipped(id);
  const { path, body } = asking(model, fields);
  const before = Date.now() / 1000;
  const paying = await paid<Both>(running.service, customer, path, body);
  const { answer, costNanoUsd, response } = paying;
  expect(nanoUsd(response.headers.get("x-xm-cost-usd") ?? "")).toBe(costNanoUsd);
  expect(answer.created).toBeGreaterThanOrEqual(Math.floor(before));
  expect(answer.expires_at).toBe(answer.created + 86_400);
  const costOfIts = (usage: Record<string, number>, variant?: string) =>
    costOf(model, usage, { tier, ...(variant !== undefined && { variant }) });
  return { ...paying, customer, costOfIts };
}

async function expectFiles(files: readonly { readonly url?: string }[], type: string, bytes: Buffer, count = 1) {
  expect(files).toHaveLength(count);
  expect(new Set(files.map(({ url }) => url)).size).toBe(count);
  for (const { url = "" } of files) {
    expect(new URL(url).pathname).toMatch(/^\/media\/\w+$/);
    const file = await fileAt(url);
    expect([file.type, file.bytes.equals(bytes)]).toEqual([type, true]);
  }
}

const flux = "black-forest-labs/flux-1-dev";
const ideogram = "ideogram/ideogram-v3";
const banana = "google/gemini-nano-banana-2.1";
const bananaPro = "google/gemini-3-pro-image";
const kontext = "black-forest-labs/flux-1-kontext-pro";
const veo = "google/veo-3.1";
const omni = "google/gemini-omni-1.2-flash";
const voice = "elevenlabs/eleven-multilingual-v2";
const music = "elevenlabs/eleven-music";

describe.each(["standard", "elite"] as const)("images, of a %s account", (tier) => {
  test("of Replicate: the requested number, at the model's price each", async () => {
    const { answer, entry, costNanoUsd, costOfIts } = await made(
      flux,
      { prompt: "a fox", n: 2, aspect_ratio: "16:9" },
      { tier },
    );
    await expectFiles(answer.data, "image/png", mockPng, 2);
    expect(costNanoUsd).toBe(costOfIts({ image: 2 }));
    expect(entry.request).toMatchObject({ upstream: "replicate", attempts: { length: 1 }, usage: { image: 2 } });
    const [submitted, ...others] = posted(running.replicate);
    expect(submitted).toMatchObject({
      path: "/v1/models/black-forest-labs/flux-dev/predictions",
      body: { input: { prompt: "a fox", num_outputs: 2, aspect_ratio: "16:9" } },
    });
    expect(others).toEqual([]);
  });

  test("of fal: the more expensive quality costs its exact price", async () => {
    running.fal.respond({ output: { images: [{ url: "0.png" }, { url: "1.png" }, { url: "2.png" }], seed: 7 } });
    const fields = { prompt: "a fox", n: 3, rendering_speed: "QUALITY", image_size: "landscape_16_9" };
    const { answer, entry, costNanoUsd, costOfIts } = await made(ideogram, fields, { tier });
    await expectFiles(answer.data, "image/png", mockPng, 3);
    expect(costNanoUsd).toBe(costOfIts({ image: 3 }, "quality"));
    expect(costNanoUsd).toBe(
      tier === "standard" ? 270_000_000n : (270_000_000n * costOfIts({ image: 1 })) / 60_000_000n,
    );
    expect(entry.request).toMatchObject({ upstream: "fal", usage: { image: 3 } });
    const { n: _, ...rest } = fields;
    expect(posted(running.fal)[0]?.body).toEqual({ num_images: 3, ...rest });
  });

  test("of Google: one call for each, whose price has the prompt in it", async () => {
    const { answer, entry, costNanoUsd, costOfIts } = await made(
      bananaPro,
      { prompt: "Fünf 🦊", n: 2, resolution: "4K", aspect_ratio: "16:9" },
      { tier },
    );
    await expectFiles(answer.data, "image/png", mockPng, 2);
    expect(costNanoUsd).toBe(costOfIts({ image: 2 }, "4k"));
    expect(entry.request).toMatchObject({ upstream: "gemini", usage: { image: 2 } });
    const asked = posted(running.gemini);
    expect(asked).toHaveLength(2);
    expect(asked[0]?.path).toBe("/v1beta/models/gemini-3-pro-image:generateContent");
    expect(asked[0]?.body).toMatchObject({
      generationConfig: { responseModalities: ["IMAGE"], imageConfig: { aspectRatio: "16:9", imageSize: "4K" } },
    });
  });
});

describe("images", () => {
  test.each([
    [flux, 2],
    [ideogram, 1],
    [banana, 2],
  ])("of %s in the answer itself, where that is asked for: no file is stored", async (id, n) => {
    const { answer, customer } = await made(id, { prompt: "a fox", n, response_format: "b64_json" });
    expect(answer.data.map(({ b64_json }) => b64_json)).toEqual(Array(n).fill(mockPng.toString("base64")));
    expect(answer.data.every(({ url }) => url === undefined)).toBe(true);
    expect(await running.filesOf(customer)).toBe(0);
  });

  test("edited by Google: the upload's bytes are sent, and charged as input", async () => {
    const customer = await running.service.account("1");
    const [first, second] = [pngOf(30, 20), pngOf(8, 9)];
    const image = [await uploaded(running.service, customer, first), await uploaded(running.service, customer, second)];
    const body = { model: banana, prompt: "make it night", n: 2, image };
    const { answer, entry, costNanoUsd } = await paid(running.service, customer, "/v1/images/generations", body);
    await expectFiles(answer.data, "image/png", mockPng, 2);
    const usage = { image: 2, input_image: 4 };
    expect(entry.request.usage).toEqual(usage);
    expect(costNanoUsd).toBe(costOf(shipped(banana), usage));
    const data = [first, second].map((bytes) => ({
      inlineData: { mimeType: "image/png", data: bytes.toString("base64") },
    }));
    for (const { body } of posted(running.gemini))
      expect(body).toMatchObject({ contents: [{ role: "user", parts: [...data, { text: "make it night" }] }] });
  });

  test("edited by fal as a form: the image is sent in the model's own field", async () => {
    const customer = await running.service.account("1");
    const image = await toFile(pngOf(30, 20), "image.png");
    for (const images of [image, [image]]) {
      const body = { model: kontext, prompt: "make it night", image: images, response_format: "url" } as const;
      const { data, response } = await customer.openai.images.edit(body).withResponse();
      await expectFiles(data.data as never, "image/png", mockPng);
      expect(nanoUsd(response.headers.get("x-xm-cost-usd") ?? "")).toBe(costOf(shipped(kontext), { image: 1 }));
    }
    const image_url = `data:image/png;base64,${pngOf(30, 20).toString("base64")}`;
    expect(posted(running.fal).map(({ body }) => body)).toEqual(Array(2).fill({ prompt: "make it night", image_url }));
    await expect(
      customer.openai.images.edit({ model: kontext, prompt: "x", image: [image, image] }),
    ).rejects.toMatchObject({ status: 400, param: "image_url" });
  });
});

describe("video, by the second", () => {
  test.each(["standard", "elite"] as const)("of fal, of a %s account: the input decides the price", async (tier) => {
    running.fal.respond({
      states: ["IN_QUEUE", "IN_PROGRESS", "COMPLETED"],
      output: { video: { url: "0.mp4" }, seed: 7 },
    });
    const fields = { prompt: "waves", duration: "6s", resolution: "4k", generate_audio: true };
    const { answer, entry, costNanoUsd, costOfIts, customer } = await made(veo, fields, { tier });
    expect(answer).toMatchObject({ object: "media.generation", model: veo, output: { seed: 7 } });
    expect(answer.id).toBe(entry.id.replace("req_", "gen_"));
    expect(answer.files).toMatchObject([{ content_type: "video/mp4", bytes: mockMp4.length }]);
    await expectFiles(answer.files, "video/mp4", mockMp4);
    expect(costNanoUsd).toBe(costOfIts({ second: 6 }, "4k"));
    expect(entry.request).toMatchObject({ upstream: "fal", attempts: { length: 1 }, usage: { second: 6 } });
    expect(posted(running.fal).map(({ path, body }) => [path, body])).toEqual([["/fal-ai/veo3.1", fields]]);
    expect(await running.filesOf(customer)).toBe(1);
  });

  test("of Google: started in the background, polled, downloaded", async () => {
    running.gemini.respond({ states: ["in_progress", "completed"] });
    const fields = { prompt: "waves", duration: 5, resolution: "1080p", aspect_ratio: "9:16" };
    const { answer, entry, costNanoUsd, costOfIts } = await made(omni, fields);
    await expectFiles(answer.files, "video/mp4", mockMp4);
    expect(costNanoUsd).toBe(costOfIts({ second: 5 }, "1080p"));
    expect(entry.request).toMatchObject({ upstream: "gemini", usage: { second: 5 } });
    expect(posted(running.gemini)[0]).toMatchObject({
      path: "/v1beta/interactions",
      body: { model: "gemini-omni-1.2-flash", background: true, response_format: { duration: "5s" } },
    });
  });

  test("of Google from an image: its bytes go along, and it is charged", async () => {
    const customer = await running.service.account("5");
    const image = await uploaded(running.service, customer, pngOf(30, 20));
    const body = { model: omni, input: { prompt: "waves", duration: 3, image } };
    const path = "/v1/media/generations";
    const { entry, costNanoUsd } = await paid<MediaAnswer>(running.service, customer, path, body);
    const usage = { second: 3, input_image: 1 };
    expect(entry.request.usage).toEqual(usage);
    expect(costNanoUsd).toBe(costOf(shipped(omni), usage));
    expect(JSON.stringify(posted(running.gemini)[0]?.body)).toContain(pngOf(30, 20).toString("base64"));
  });
});

describe("sound", () => {
  test.each(["standard", "elite"] as const)("speech, of a %s account: by the character", async (tier) => {
    running.fal.respond({ output: { audio: { url: "0.mp3" }, timestamps: null } });
    const { answer, entry, costNanoUsd, costOfIts } = await made(voice, { text: "Grüße 👋", voice: "Aria" }, { tier });
    expect(answer.files).toMatchObject([{ content_type: "audio/mpeg", bytes: mockMp3.length }]);
    await expectFiles(answer.files, "audio/mpeg", mockMp3);
    expect(entry.request).toMatchObject({ upstream: "fal", usage: { character: 7 } });
    expect(costNanoUsd).toBe(costOfIts({ character: 7 }));
    expect(posted(running.fal)[0]?.body).toEqual({ text: "Grüße 👋", voice: "Aria" });
  });

  test("speech on OpenAI's route, whose clients always name mp3: the provider's only format is not sent", async () => {
    running.fal.respond({ output: { audio: { url: "0.mp3" } } });
    const customer = await running.service.account("1");
    const body = { model: voice, input: "Grüße 👋", voice: "Aria", response_format: "mp3" };
    const response = await customer.post("/v1/audio/speech", body);
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "audio/mpeg"]);
    expect(Buffer.from(await response.arrayBuffer())).toEqual(mockMp3);
    expect(posted(running.fal)[0]?.body).toEqual({ text: "Grüße 👋", voice: "Aria" });
    expect((await customer.post("/v1/audio/speech", { ...body, response_format: "wav" })).status).toBe(400);
    await running.service.settled();
    expect(await customer.ledger("usage")).toMatchObject([{ amount_usd: "-0.0007" }]);
  });

  test.each([
    [30_000, 1],
    [90_000, 2],
    [295_000, 5],
  ])("music of %d ms: %d started minutes", async (music_length_ms, minute) => {
    running.fal.respond({ output: { audio: { url: "0.mp3" } } });
    const { answer, entry, costNanoUsd, costOfIts } = await made(music, { prompt: "a waltz", music_length_ms });
    await expectFiles(answer.files, "audio/mpeg", mockMp3);
    expect(entry.request.usage).toEqual({ minute });
    expect(costNanoUsd).toBe(costOfIts({ minute }));
  });
});
