import { describe, expect, test } from "vitest";
import { formatsService } from "../support/formats-service.ts";
import { clientOf, newCaller } from "../support/gemini-client-setup.ts";
import { entryOf, expectUntouched, nanoUsd } from "../support/service-setup.ts";

const served = formatsService();
const google = { model: "google/gemini-embedding-001", priceNanoUsd: 150n };
const contents = ["red apple", "blue sea", "red apple pie"];

/** Prices in nano-USD per token, independent of the catalog. */
describe.each([
  google,
  { model: "gemini-embedding-001", priceNanoUsd: 150n },
  { model: "openai/text-embedding-3-small", priceNanoUsd: 20n },
  { model: "local/embeddings", priceNanoUsd: 20n },
])("$model", ({ model, priceNanoUsd }) => {
  test("the client's embeddings are those of /v1/embeddings, and cost as much", async () => {
    const { client, customer } = await newCaller(served, "1");
    const dimensions = 12;
    const { embeddings, sdkHttpResponse } = await client.models.embedContent({
      model,
      contents,
      config: { outputDimensionality: dimensions, taskType: "RETRIEVAL_DOCUMENT", title: "Fruit" },
    });
    const headers = sdkHttpResponse?.headers ?? {};
    expect(headers["x-ignored-params"]).toBe("taskType, title");
    const id = model.includes("/") ? model : google.model;
    const same = await customer.openai.embeddings
      .create({ model: id, input: contents, dimensions, encoding_format: "float" })
      .withResponse();
    expect(embeddings?.map(({ values }) => values)).toEqual(same.data.data.map(({ embedding }) => embedding));
    await served.service.settled();
    const entries = await Promise.all(
      [headers["x-request-id"], same.request_id].map((each) => entryOf(served.service, each)),
    );
    const tokens = same.data.usage.prompt_tokens;
    expect(tokens).toBeGreaterThan(3);
    for (const { amount_usd, request } of entries) {
      expect(request).toMatchObject({ model: id, usage: { input: tokens }, status: "succeeded" });
      expect(nanoUsd(amount_usd)).toBe(-priceNanoUsd * BigInt(tokens));
    }
    expect(nanoUsd(await customer.available())).toBe(nanoUsd("1.00") - 2n * priceNanoUsd * BigInt(tokens));
  });
});

const path = (verb: string, model = "local/embeddings") => `/v1beta/models/${model}:${verb}`;
const content = (...texts: string[]) => ({ parts: texts.map((text) => ({ text })) });

test("embedContent: one content in either spelling of its fields, its parts as lines", async () => {
  const customer = await served.service.account("1");
  const values = async (body: object) => {
    const response = await customer.post(path("embedContent"), body);
    const answer = (await response.json()) as { embedding: { values: number[] } };
    return [response.headers.get("x-ignored-params"), answer.embedding.values];
  };
  const { data } = await customer.openai.embeddings.create({
    model: "local/embeddings",
    input: "red\napple",
    dimensions: 8,
    encoding_format: "float",
  });
  const expected = data[0]?.embedding;
  expect(await values({ content: content("red", "apple"), outputDimensionality: 8 })).toEqual([null, expected]);
  const snake = { content: content("red", "apple"), output_dimensionality: 8, task_type: "CLUSTERING" };
  expect(await values({ model: "models/local/embeddings", ...snake })).toEqual(["taskType", expected]);
});

const one = { content: content("a") };

test.each<[verb: string, body: object, field: string, model?: string]>([
  ["embedContent", {}, "content"],
  ["embedContent", { content: { parts: [] } }, "content.parts"],
  ["embedContent", { content: content("a", "") }, "content.parts[1].text"],
  ["embedContent", { content: { parts: [{ inlineData: {} }] } }, "content.parts[0].text"],
  ["embedContent", { ...one, outputDimensionality: 0 }, "outputDimensionality"],
  ["embedContent", { ...one, outputDimensionality: 4_000 }, "outputDimensionality"],
  ["embedContent", one, "The model", "local/chat"],
  ["batchEmbedContents", one, "requests"],
  ["batchEmbedContents", { requests: [] }, "requests"],
  ["batchEmbedContents", { requests: Array(257).fill(one) }, "requests"],
  ["batchEmbedContents", { requests: [one, { content: {} }] }, "requests[1].content.parts"],
  ["batchEmbedContents", { requests: [one, { ...one, outputDimensionality: 8 }] }, "requests[1].outputDimensionality"],
])("%s of %j is refused in the format, naming %s", async (verb, body, field, model) => {
  const customer = await served.service.account("1");
  const response = await customer.post(path(verb, model), body);
  const { error } = (await response.json()) as { error: { message: string } };
  expect(error).toMatchObject({ code: 400, status: "INVALID_ARGUMENT" });
  expect(error.message.startsWith(field)).toBe(true);
  await expectUntouched(served.service, customer, "1.00");
});

test("errors have the format's shape in the client", async () => {
  const { customer } = await newCaller(served, "0");
  const embed = (model: string, key = customer.key) =>
    clientOf(served.service, { ...customer, key }).models.embedContent({ model, contents });
  await expect(embed("local/embeddings")).rejects.toMatchObject({ status: 402 });
  await expect(embed("local/none")).rejects.toMatchObject({ status: 404 });
  await expect(embed("local/embeddings", "live_wrong")).rejects.toMatchObject({ status: 401 });
});
