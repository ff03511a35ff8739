import { expect, test } from "vitest";
import { geminiService } from "../support/gemini-client-setup.ts";
import { mockGeminiError } from "../support/mock-gemini.ts";
import { entryOf, nanoUsd } from "../support/service-setup.ts";

const served = geminiService();
const model = "google/gemini-embedding-001";
const priceNanoUsd = 150n;
const input = ["red apple", "blue sea", "red apple pie"];

test("every encoding gives the same vectors, in the order of the texts", async () => {
  const { openai } = await served.service.account("1");
  // The client asks for base64 by itself and decodes it.
  const usual = await openai.embeddings.create({ model, input });
  expect(usual).toMatchObject({ object: "list", model });
  expect(usual.data.map(({ index, object }) => [index, object])).toEqual([0, 1, 2].map((at) => [at, "embedding"]));
  expect(usual.data.map(({ embedding }) => embedding.indexOf(0.5))).toEqual([0, 1, 2]);
  const float = await openai.embeddings.create({ model, input, encoding_format: "float" });
  expect(float.data).toEqual(usual.data);
  const base64 = await openai.embeddings.create({ model, input, encoding_format: "base64" });
  const decoded = base64.data.map(({ embedding }) => {
    const bytes = Buffer.from(embedding as unknown as string, "base64");
    return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4));
  });
  expect(decoded).toEqual(usual.data.map(({ embedding }) => embedding));
  const names = served.gemini.requests.map(({ path }) => path);
  expect(names).toEqual(Array.from({ length: 3 }, () => "/v1beta/models/gemini-embedding-001:batchEmbedContents"));
});

test("dimensions: as many numbers, of length one again", async () => {
  const { openai } = await served.service.account("1");
  const { data } = await openai.embeddings.create({ model, input: "red", dimensions: 12 });
  const [{ embedding } = { embedding: [] }] = data;
  expect(embedding).toHaveLength(12);
  expect(Math.hypot(...embedding)).toBeCloseTo(1, 6);
  expect(served.gemini.requests[0]?.body).toMatchObject({ requests: [{ outputDimensionality: 12 }] });
});

test("the provider's count is charged; where it tells none, an estimate that says so", async () => {
  const customer = await served.service.account("1");
  const embeddings = [{ values: [1, 0] }, { values: [0, 1] }];
  const call = async (usageMetadata?: object) => {
    served.gemini.respond({ body: { embeddings, ...(usageMetadata && { usageMetadata }) } });
    const { data, request_id } = await customer.openai.embeddings
      .create({ model, input: ["red apple", "blue sea"] })
      .withResponse();
    await served.service.settled();
    const { request, amount_usd } = await entryOf(served.service, request_id);
    expect(request.usage["input"]).toBe(data.usage.prompt_tokens);
    expect(nanoUsd(amount_usd)).toBe(-priceNanoUsd * BigInt(data.usage.prompt_tokens));
    return { tokens: data.usage.prompt_tokens, estimated: request.estimated };
  };
  expect(await call({ promptTokenCount: 4 })).toEqual({ tokens: 4, estimated: false });
  const estimate = await call();
  expect(estimate.estimated).toBe(true);
  expect(estimate.tokens).toBeGreaterThan(0);
});

test("what the provider refuses is told, and costs nothing", async () => {
  const customer = await served.service.account("1");
  served.gemini.respond(mockGeminiError(400, "The text is too long."));
  await expect(customer.openai.embeddings.create({ model, input })).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining("The text is too long."),
  });
  await served.service.settled();
  expect(await customer.available()).toBe("1.00");
});
