import { describe, expect, test } from "vitest";
import { startGemini } from "../support/gemini-setup.ts";
import { mockGeminiError } from "../support/mock-gemini.ts";
import { errorOf } from "../support/upstreams-setup.ts";

async function start() {
  const { mock, provider, text } = await startGemini();
  return { mock, embed: (body: Record<string, unknown>) => provider.embed({ ...text(), model: "embed-mock", body }) };
}

describe("embeddings", () => {
  test("are requested together and answered in OpenAI's shape; usage is absent if the provider reports none", async () => {
    const { mock, embed } = await start();
    const answer = await embed({ model: "embed-mock", input: ["one", "two"], encoding_format: "base64" });
    expect(answer).toEqual({
      data: [
        { index: 0, embedding: [0.5, 0, 0, 0, 0, 0, 0, 0] },
        { index: 1, embedding: [0, 0.5, 0, 0, 0, 0, 0, 0] },
      ],
    });
    expect(mock.requests[0]).toMatchObject({ method: "POST", path: "/v1beta/models/embed-mock:batchEmbedContents" });
    expect(mock.requests[0]?.body).toEqual({
      requests: ["one", "two"].map((text) => ({ model: "models/embed-mock", content: { parts: [{ text }] } })),
    });
  });

  test("of one text are a list of one; truncated vectors are normalized", async () => {
    const { mock, embed } = await start();
    expect(await embed({ input: "one", dimensions: 3 })).toEqual({ data: [{ index: 0, embedding: [1, 0, 0] }] });
    expect(mock.requests[0]?.body).toMatchObject({ requests: [{ outputDimensionality: 3 }] });
    mock.respond({ body: { embeddings: [{ values: [0, 0] }] } });
    expect(await embed({ input: "one", dimensions: 2 })).toEqual({ data: [{ index: 0, embedding: [0, 0] }] });
  });

  test("of 256 texts are requested by hundreds, and returned in their order", async () => {
    const { mock, embed } = await start();
    const input = Array.from({ length: 256 }, (_, i) => `text ${i}`);
    const { data } = await embed({ input, dimensions: 100 });
    const sizes = mock.requests.map(({ body }) => (body["requests"] as object[]).length);
    expect(sizes).toEqual([100, 100, 56]);
    const axes = (data as { embedding: number[] }[]).map(({ embedding }) => embedding.indexOf(1));
    expect(axes).toEqual(input.map((_, i) => i % 100));
    expect((data as { index: number }[]).map(({ index }) => index)).toEqual(input.map((_, i) => i));
  });

  test("report their tokens where the provider does, for all batches", async () => {
    const { mock, embed } = await start();
    const values = (count: number) => Array.from({ length: count }, () => ({ values: [1] }));
    const batch = (count: number, promptTokenCount?: number) => ({
      body: { embeddings: values(count), ...(promptTokenCount && { usageMetadata: { promptTokenCount } }) },
    });
    mock.respond(batch(100, 200), batch(1, 3), batch(100, 200), batch(1));
    const input = Array.from({ length: 101 }, () => "text");
    expect(await embed({ input })).toMatchObject({ usage: { prompt_tokens: 203, total_tokens: 203 } });
    expect(await embed({ input })).not.toHaveProperty("usage");
  });

  test.each([
    ["nothing", {}],
    ["fewer than were asked for", { embeddings: [{ values: [1] }] }],
    ["more than were asked for", { embeddings: [1, 2, 3].map((value) => ({ values: [value] })) }],
    ["no values", { embeddings: [{ values: [1] }, {}] }],
    ["empty values", { embeddings: [{ values: [1] }, { values: [] }] }],
    ["values that are no numbers", { embeddings: [{ values: [1] }, { values: ["1"] }] }],
    ["values that are none", { embeddings: [{ values: [1] }, { values: [null] }] }],
  ])("%s is refused as an answer", async (_, body) => {
    const { mock, embed } = await start();
    mock.respond({ body });
    expect(await errorOf(embed({ input: ["one", "two"] }))).toMatchObject({ kind: "unavailable" });
  });

  test("tokens instead of texts are refused before the provider is called", async () => {
    const { mock, embed } = await start();
    for (const input of [[[1, 2]], [1], undefined])
      expect(await errorOf(embed({ input }))).toMatchObject({ kind: "refused", param: "input" });
    expect(mock.requests).toEqual([]);
  });

  test("a batch that fails fails all of them", async () => {
    const { mock, embed } = await start();
    mock.respond({}, mockGeminiError(429, "Slow down"));
    const input = Array.from({ length: 101 }, () => "text");
    expect(await errorOf(embed({ input }))).toMatchObject({ kind: "busy" });
  });
});
