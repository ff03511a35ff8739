import { describe, expect, test } from "vitest";
import { entryOf, localModel, nanoUsd, providerModel, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile();
const providerEmbeddings = "openai/text-embedding-3-small";
const embeddingModels = ["local/embeddings", providerEmbeddings] as const;
const length = (vector: readonly number[]) => Math.sqrt(vector.reduce((sum, each) => sum + each * each, 0));

describe.each(embeddingModels)("%s", (model) => {
  test("a string, a list, and every encoding give the same vectors", async () => {
    const { openai } = await running.service.account("1");
    const input = ["red apple", "blue sea", "red apple pie"];
    // The client requests base64 by default and decodes it.
    const usual = await openai.embeddings.create({ model, input });
    expect(usual).toMatchObject({ object: "list", model });
    expect(usual.data.map(({ index, object }) => [index, object])).toEqual([0, 1, 2].map((at) => [at, "embedding"]));
    for (const { embedding } of usual.data) expect(length(embedding)).toBeCloseTo(1, 5);
    expect(usual.usage.prompt_tokens).toBe(usual.usage.total_tokens);
    expect(usual.usage.prompt_tokens).toBeGreaterThan(0);
    const float = await openai.embeddings.create({ model, input, encoding_format: "float" });
    expect(float.data.map(({ embedding }) => embedding.map(Math.fround))).toEqual(
      usual.data.map(({ embedding }) => embedding),
    );
    const base64 = await openai.embeddings.create({ model, input, encoding_format: "base64" });
    const [first] = base64.data.map(({ embedding }) => embedding as unknown as string);
    expect(new Float32Array(Uint8Array.from(Buffer.from(first ?? "", "base64")).buffer)).toEqual(
      new Float32Array(usual.data[0]?.embedding ?? []),
    );
    const single = await openai.embeddings.create({ model, input: "red apple" });
    expect(single.data.map(({ embedding }) => embedding)).toEqual([usual.data[0]?.embedding]);
  });

  test("dimensions", async () => {
    const { openai } = await running.service.account("1");
    const answer = await openai.embeddings.create({ model, input: "red", dimensions: 12 });
    expect(answer.data[0]?.embedding).toHaveLength(12);
    const body = { model: "text-embedding-3-small", input: "red", dimensions: 12, encoding_format: "base64" };
    expect(running.provider.requests.map((request) => request.body)).toEqual(
      model === providerEmbeddings ? [body] : [],
    );
  });

  test("256 inputs are accepted and billed by usage", async () => {
    const { openai } = await running.service.account("1");
    const input = Array.from({ length: 256 }, (_, at) => `text number ${at}`);
    const { data: answer, request_id } = await openai.embeddings.create({ model, input }).withResponse();
    expect(answer.data.map(({ index }) => index)).toEqual(input.map((_, at) => at));
    const { request } = await entryOf(running.service, request_id);
    expect(request).toMatchObject({ model, endpoint: "/v1/embeddings", usage: { input: answer.usage.prompt_tokens } });
  });
});

test("numbers instead of base64, out of order, are corrected", async () => {
  const { openai } = await running.service.account("1");
  running.provider.respond({
    body: {
      data: [
        { index: 1, embedding: [0, 1] },
        { index: 0, embedding: [1, 0] },
      ],
      usage: { prompt_tokens: 2, total_tokens: 2 },
    },
  });
  const answer = await openai.embeddings.create({ model: providerEmbeddings, input: ["a", "b"] });
  expect(answer.data.map(({ embedding }) => embedding)).toEqual([
    [1, 0],
    [0, 1],
  ]);
});

describe("tokens in place of texts", () => {
  test.each([
    { input: [9906, 1070], tokens: 2, vectors: 1 },
    { input: [[9906, 1070], [6307]], tokens: 3, vectors: 2 },
  ])("$input: sent as they are, and billed by their number", async ({ input, tokens, vectors }) => {
    const { openai } = await running.service.account("1");
    const { data: answer, request_id } = await openai.embeddings
      .create({ model: providerEmbeddings, input })
      .withResponse();
    expect(answer.data).toHaveLength(vectors);
    expect(answer.usage).toEqual({ prompt_tokens: tokens, total_tokens: tokens });
    expect(running.provider.requests.map(({ body }) => body["input"])).toEqual([input]);
    const { request, amount_usd } = await entryOf(running.service, request_id);
    expect(request.usage).toEqual({ input: tokens });
    expect(nanoUsd(amount_usd)).toBe(-20n * BigInt(tokens));
  });

  test("the local model accepts them as well: equal tokens have equal vectors, and each token is billed", async () => {
    const { openai } = await running.service.account("1");
    const model = "local/embeddings";
    const single = await openai.embeddings.create({ model, input: [9906, 1070] });
    const { data: several, request_id } = await openai.embeddings
      .create({ model, input: [[6307], [9906, 1070], [9906, 1070, 1917]] })
      .withResponse();
    const [other, same, near] = several.data.map(({ embedding }) => embedding);
    expect(single.data.map(({ embedding }) => embedding)).toEqual([same]);
    const similarity = (a: readonly number[] = [], b: readonly number[] = []) =>
      a.reduce((sum, each, at) => sum + each * (b[at] ?? 0), 0);
    expect(similarity(same, near)).toBeGreaterThan(similarity(same, other) + 0.1);
    const { request } = await entryOf(running.service, request_id);
    expect([several.usage.prompt_tokens, request.usage]).toEqual([6, { input: 6 }]);
  });
});

describe("models", () => {
  test("the list has the models that workers can serve, with exact prices, and needs no key", async () => {
    const { openai } = await running.service.account("0");
    const list = await Array.fromAsync(openai.models.list());
    const ids = list.map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining([localModel, providerModel, "local/embeddings", providerEmbeddings]));
    // No worker has the keys of the other providers.
    expect(ids.filter((id) => !/^(local|openai)\//.test(id))).toEqual([]);
    const response = await fetch(`${running.service.baseUrl}/v1/models`);
    const body = (await response.json()) as { object: string; data: { id: string }[] };
    expect(body.object).toBe("list");
    expect(body.data.find(({ id }) => id === providerModel)).toEqual({
      id: providerModel,
      object: "model",
      created: expect.any(Number),
      owned_by: "openai",
      name: expect.any(String),
      type: "text",
      endpoint: "/v1/chat/completions",
      context_length: 1_047_576,
      max_output_tokens: 32_768,
      features: ["tools", "json", "image", "file", "logprobs"],
      input_modalities: ["text", "image", "file"],
      output_modalities: ["text"],
      supported_parameters: expect.arrayContaining(["max_tokens", "temperature", "tools", "structured_outputs"]),
      reasoning: null,
      description: expect.any(String),
      deprecated_at: null,
      x_elite_discount_bps: 1_000,
      x_batch_discount_bps: 0,
      x_provider_batch_discount_bps: null,
      x_upstreams: [{ id: "openai", region: null, data_residency: null }],
      x_pricing: {
        input: { unit: "1M_tokens", list_usd: "0.40", elite_usd: "0.36" },
        cached_input: { unit: "1M_tokens", list_usd: "0.10", elite_usd: "0.09" },
        output: { unit: "1M_tokens", list_usd: "1.60", elite_usd: "1.44" },
      },
    });
  });

  test("an id with its slash, raw or escaped", async () => {
    const { openai } = await running.service.account("0");
    const model = await openai.models.retrieve(localModel);
    expect(model).toMatchObject({ id: localModel, object: "model" });
    for (const id of ["local/chat", "local%2Fchat", "local%2fchat"])
      expect(await (await fetch(`${running.service.baseUrl}/v1/models/${id}`)).json()).toEqual(
        JSON.parse(JSON.stringify({ ...model, _request_id: undefined })),
      );
  });

  test.each([
    "nobody/nothing",
    "anthropic/claude-sonnet-4.5",
    "local",
    "local/chat/more",
    "__proto__",
    "a/constructor",
  ])("%s is not listed: 404", async (id) => {
    const { openai } = await running.service.account("0");
    await expect(openai.models.retrieve(id)).rejects.toMatchObject({
      status: 404,
      code: "model_not_found",
      param: "model",
    });
  });
});
