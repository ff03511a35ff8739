import type OpenAI from "openai";
import { describe, expect, test } from "vitest";
import {
  fileAt,
  imageModel,
  imagePrices,
  images,
  paid,
  pngOf,
  pngSize,
  providerImages,
  uploaded,
} from "../support/generation-setup.ts";
import { mockPng } from "../support/mock-openai-media.ts";
import { catalogWith, entryOf, nanoUsd, refusal, refusalOf, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ CATALOG_FILE: catalogWith({}, imagePrices) });
const millionth = 1_000n;
const cent = 10_000_000n;
const day = 86_400;

/** `client.images.generate`, and its ledger entry. */
async function generated(openai: OpenAI, body: OpenAI.ImageGenerateParamsNonStreaming) {
  const { data, response } = await openai.images.generate(body).withResponse();
  await running.service.settled();
  const entry = await entryOf(running.service, response.headers.get("x-request-id"));
  expect(response.headers.get("x-xm-cost-usd")).toBe(entry.amount_usd.replace("-", ""));
  return { answer: data, entry, costNanoUsd: -nanoUsd(entry.amount_usd) };
}

const createdNow = expect.toSatisfy((seconds: number) => Math.abs(seconds - Date.now() / 1000) < 20) as number;

describe("the local model", () => {
  test.each([1, 2, 3, 4])("%i images as URLs: each can be fetched, in its size, and costs the same", async (n) => {
    const { openai, ...customer } = await running.service.account("1");
    const { answer, entry, costNanoUsd } = await generated(openai, {
      model: imageModel,
      prompt: "a lighthouse",
      n,
      size: "96x64" as "256x256",
    });
    expect(answer.created).toEqual(createdNow);
    expect(answer).toMatchObject({ expires_at: answer.created + day });
    expect(answer.data).toHaveLength(n);
    const urls = answer.data?.map(({ url }) => url ?? "") ?? [];
    expect(new Set(urls).size).toBe(n);
    for (const [at, url] of urls.entries()) {
      expect(url).toMatch(new RegExp(`^${running.service.baseUrl}/media/file_[0-9A-Za-z]{40}$`));
      // Same lifetime; the last one is created a little later.
      const lives = [0, 1, 2].map((later) => answer.created + day + later);
      expect(answer.data?.[at]).toMatchObject({ expires_at: expect.toBeOneOf(lives) as number });
      const { type, bytes } = await fileAt(url);
      expect([type, pngSize(bytes)]).toEqual(["image/png", "96x64"]);
    }
    expect(costNanoUsd).toBe(BigInt(n) * cent);
    expect(await customer.available()).toBe((1 - n * 0.01).toFixed(2));
    expect(entry.request).toMatchObject({
      model: imageModel,
      endpoint: images,
      upstream: "local",
      attempts: { length: 1 },
      status: "succeeded",
      usage: { image: n },
      estimated: false,
      shortfall_usd: "0.00",
    });
  });

  test("as base64", async () => {
    const { openai } = await running.service.account("1");
    const { answer, costNanoUsd } = await generated(openai, {
      model: imageModel,
      prompt: "a lighthouse",
      n: 2,
      size: "64x32" as "256x256",
      response_format: "b64_json",
    });
    expect(answer.data).toHaveLength(2);
    for (const image of answer.data ?? []) {
      expect(image).not.toHaveProperty("url");
      expect(image).toMatchObject({ expires_at: answer.created + day });
      expect(pngSize(Buffer.from(image.b64_json ?? "", "base64"))).toBe("64x32");
    }
    expect(costNanoUsd).toBe(2n * cent);
  });

  test("without n there is one image; size auto is the model's own, and each hint that it ignores is named", async () => {
    const customer = await running.service.account("1");
    const hints = {
      quality: "high",
      style: "vivid",
      background: "transparent",
      output_format: "webp",
      moderation: "low",
    };
    const body = { model: imageModel, prompt: "a lighthouse", size: "auto", output_compression: 50, ...hints };
    const { response, answer, costNanoUsd } = await paid(running.service, customer, images, body);
    expect(response.headers.get("x-ignored-params")).toBe(
      "background, moderation, output_compression, output_format, quality, style",
    );
    expect(answer.data).toHaveLength(1);
    expect(pngSize((await fileAt(answer.data[0]?.url ?? "")).bytes)).toBe("512x512");
    expect(costNanoUsd).toBe(cent);
  });

  test("fewer images than requested: the delivered ones are charged", async () => {
    const { openai, ...customer } = await running.service.account("0.04");
    const { answer, costNanoUsd, entry } = await generated(openai, { model: imageModel, prompt: "deliver:3", n: 4 });
    expect(answer.data).toHaveLength(3);
    expect(costNanoUsd).toBe(3n * cent);
    expect(entry.request.usage).toEqual({ image: 3 });
    expect(await customer.available()).toBe("0.01");
  });

  test("an edit: uploads are named by id, and each costs its catalog price", async () => {
    const customer = await running.service.account("1");
    const [one, other] = [
      await uploaded(running.service, customer, pngOf(30, 20)),
      await uploaded(running.service, customer, pngOf(7, 5)),
    ];
    const before = nanoUsd(await customer.available());
    const edit = { model: imageModel, prompt: "at night", n: 2, image: [one, other] };
    const { answer, costNanoUsd, entry } = await generated(
      customer.openai,
      edit as OpenAI.ImageGenerateParamsNonStreaming,
    );
    expect(answer.data?.[0]?.revised_prompt).toMatch(
      /at night.*PNG image of 30 x 20 pixels.*PNG image of 7 x 5 pixels/,
    );
    expect(costNanoUsd).toBe(2n * cent + 2n * 2_000n * millionth);
    expect(before - nanoUsd(await customer.available())).toBe(costNanoUsd);
    expect(entry.request.usage).toMatchObject({ image: 2 });
  });
});

describe("a provider's model", () => {
  test("as URLs: base64 from the provider is stored, with its revised prompt", async () => {
    const { openai, ...customer } = await running.service.account("1");
    running.provider.respond({
      body: { created: 5, data: [{ b64_json: mockPng.toString("base64"), revised_prompt: "A tall lighthouse" }] },
    });
    const { answer, costNanoUsd, entry } = await generated(openai, {
      model: providerImages,
      prompt: "a lighthouse",
      size: "1024x1024",
      quality: "low",
      response_format: "url",
      user: "u-1",
    });
    expect(answer.created).toEqual(createdNow);
    expect(answer.data).toMatchObject([{ revised_prompt: "A tall lighthouse" }]);
    const { type, bytes } = await fileAt(answer.data?.[0]?.url ?? "");
    expect([type, bytes]).toEqual(["image/png", mockPng]);
    expect(costNanoUsd).toBe(6_000_000n);
    expect(await customer.available()).toBe("0.994");
    expect(entry.request).toMatchObject({
      model: providerImages,
      upstream: "openai",
      attempts: { length: 1 },
      usage: { image: 1 },
    });
    expect(running.provider.requests).toHaveLength(1);
    const { path, body } = running.provider.requests[0] ?? {};
    expect(path).toBe("/v1/images/generations");
    expect(body).toMatchObject({ model: "gpt-image-2", prompt: "a lighthouse", size: "1024x1024", quality: "low" });
    for (const ours of ["response_format", "user"]) expect(body).not.toHaveProperty(ours);
  });

  test("without a response_format as the clients of the provider expect it: base64", async () => {
    const { openai } = await running.service.account("1");
    const { answer } = await generated(openai, { model: providerImages, prompt: "a lighthouse", quality: "low" });
    expect(answer.data).toEqual([{ b64_json: mockPng.toString("base64"), expires_at: answer.created + day }]);
    const url = { model: providerImages, prompt: "x", quality: "low", response_format: "url" } as const;
    expect((await generated(openai, url)).answer.data).toMatchObject([
      { url: expect.stringContaining("/media/") as string },
    ]);
  });

  test("unsupported fields are named, omitted, and cost nothing; size auto is the model's default", async () => {
    const customer = await running.service.account("1");
    const hints = { style: "vivid", user: "u-1" };
    const taken = { size: "auto", quality: "low", background: "auto", moderation: "low", output_format: "webp" };
    const body = { model: providerImages, prompt: "a lighthouse", ...taken, ...hints };
    const headers = { "idempotency-key": "hints" };
    const { response, costNanoUsd } = await paid(running.service, customer, images, body, headers);
    expect(response.headers.get("x-ignored-params")).toBe("style, user");
    expect(costNanoUsd).toBe(6_000_000n);
    const sent = running.provider.requests[0]?.body;
    expect(sent).toMatchObject({ ...taken, size: "1024x1024" });
    for (const hint of Object.keys(hints)) expect(sent).not.toHaveProperty(hint);
    const again = await customer.post(images, body, { headers });
    expect([again.headers.get("idempotent-replayed"), again.headers.get("x-ignored-params")]).toEqual([
      "true",
      "style, user",
    ]);
    await again.text();
  });

  test("as base64: passed on", async () => {
    const { openai } = await running.service.account("2");
    const body = { model: providerImages, prompt: "a lighthouse", n: 4, response_format: "b64_json" as const };
    const { answer, costNanoUsd } = await generated(openai, body);
    const image = { b64_json: mockPng.toString("base64"), expires_at: answer.created + day };
    expect(answer.data).toEqual([image, image, image, image]);
    expect(costNanoUsd).toBe(4n * 211_000_000n);
    expect(running.provider.requests[0]?.body["n"]).toBe(4);
  });

  test("a URL from the provider is fetched and stored: the provider's URL is not shown", async () => {
    const { openai } = await running.service.account("1");
    const address = running.provider.url.replace("/v1", "/renders/1.png");
    running.provider.respond(
      { body: { created: 5, data: [{ url: address }] } },
      { body: mockPng, headers: { "content-type": "image/jpeg" } },
    );
    const url = { model: providerImages, prompt: "a lighthouse", response_format: "url" } as const;
    const { answer } = await generated(openai, url);
    const { type, bytes } = await fileAt(answer.data?.[0]?.url ?? "");
    expect([type, bytes]).toEqual(["image/png", mockPng]);
    expect(JSON.stringify(answer)).not.toContain("renders");
  });

  test("an edit sends the bytes of the uploads in a form, and charges for each", async () => {
    const customer = await running.service.account("1");
    const source = pngOf(30, 20);
    const [image, mask] = [
      await uploaded(running.service, customer, source),
      await uploaded(running.service, customer, pngOf(30, 21)),
    ];
    const edit = { model: providerImages, prompt: "at night", quality: "low" as const, image: [image], mask };
    const { costNanoUsd } = await generated(customer.openai, edit as OpenAI.ImageGenerateParamsNonStreaming);
    expect(costNanoUsd).toBe(6_000_000n + 2n * 12_288_000n);
    const { path, form } = running.provider.requests[0] ?? {};
    expect(path).toBe("/v1/images/edits");
    expect(form?.find(({ name }) => name === "image[]")).toMatchObject({ type: "image/png", bytes: source });
    expect(form?.find(({ name }) => name === "mask")?.bytes).toEqual(pngOf(30, 21));
    expect(JSON.stringify(form?.map(({ bytes }) => bytes.toString("latin1")))).not.toContain(image);
  });
});

test("only POST is allowed", async () => {
  const response = await fetch(running.service.baseUrl + images);
  expect(await refusalOf(response)).toEqual(
    refusal({ status: 405, type: "not_found_error", code: "method_not_allowed" }),
  );
});
