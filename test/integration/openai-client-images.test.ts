import type OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { fileAt, imageModel, imagePrices, images, paid, pngSize, providerImages } from "../support/generation-setup.ts";
import { mockPng } from "../support/mock-openai-media.ts";
import { catalogWith, entryOf, nanoUsd, refusal, refusalOf, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ CATALOG_FILE: catalogWith({}, imagePrices) });
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

const begunAt = Math.floor(Date.now() / 1000);
/** The service's time, and not the provider's. */
const createdNow = expect.toSatisfy((seconds: number) => seconds >= begunAt && seconds <= Date.now() / 1000) as number;

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
});

test("only POST is allowed", async () => {
  const response = await fetch(running.service.baseUrl + images);
  expect(await refusalOf(response)).toEqual(
    refusal({ status: 405, type: "not_found_error", code: "method_not_allowed" }),
  );
});
