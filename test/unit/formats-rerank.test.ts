import fc from "fast-check";
import { expect, test } from "vitest";
import { parseRouted, rerankCodec, rerankOf, rerankSize } from "#formats";
import { rerank } from "../support/local-setup.ts";

const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 3_000 }).filter((each) => each.trim() !== "");
const call = fc.record(
  {
    query: text,
    documents: fc.array(text, { minLength: 1, maxLength: 20 }),
    max_tokens_per_doc: fc.integer({ min: 1, max: 1_000 }),
  },
  { requiredKeys: ["query", "documents"] },
);

test("the hold covers the billed size of a call, however its text is split into tokens", async () => {
  await fc.assert(
    fc.asyncProperty(call, async (request) => {
      const { size } = rerankCodec.parse({ model: "local/rerank", ...request }, 0);
      const { usage, meta } = await rerank({ top_n: 1, ...request });
      expect(usage.total_tokens).toBeLessThanOrEqual(size.inputBytes);
      expect(meta.billed_units.search_units).toBeLessThanOrEqual(size.searches ?? 0);
    }),
    { numRuns: 50 },
  );
});

test("searches are counted as Cohere does", () => {
  const searches = (count: number, tokens: number, rest: object = {}) => {
    const body = { model: "m", query: "q", documents: Array(count).fill("d".repeat(tokens)), ...rest };
    return rerankSize(rerankOf(body), (each) => each.length).searches;
  };
  expect([searches(1, 1), searches(100, 499), searches(101, 499)]).toEqual([1, 1, 2]);
  // A document of 500 tokens is too long for one chunk, because the query counts as well.
  expect([searches(100, 500), searches(50, 999), searches(100, 1_000)]).toEqual([2, 1, 3]);
  expect(searches(100, 1_000, { max_tokens_per_doc: 499 })).toBe(1);
});

test("the local model ranks the document with the rare words of the query first", async () => {
  const documents = ["the cat and the dog", "the quick brown fox", "the dog sleeps", ""];
  const { results } = await rerank({ query: "What does the FOX do?", documents, top_n: 4 });
  expect(results.map(({ index }) => index)).toEqual([1, 0, 2, 3]);
  expect(results.at(-1)?.relevance_score).toBe(0);
  expect((await rerank({ query: "fox", documents, top_n: 1 })).results).toHaveLength(1);
});

test("the local model reads 4,096 tokens of a query, so that its words times the documents are bounded", async () => {
  const words = Array.from({ length: 6_000 }, (_, at) => `w${at}`).join(" ");
  const { results } = await rerank({ query: `w0 ${words} fox`, documents: ["fox", "w1"], top_n: 2 });
  expect(results).toMatchObject([{ index: 1 }, { index: 0, relevance_score: 0 }]);
});

test("a field that rank_fields names a hundred times is ranked once", () => {
  const body = { model: "m", query: "q", documents: [{ text: "a", title: "b" }] };
  expect(rerankOf({ ...body, rank_fields: [...Array(99).fill("text"), "title"] }).texts).toEqual(["a\nb"]);
});

test("a body of more fields than any format has is refused before it is copied", () => {
  const more = (fields: number) => Object.fromEntries(Array.from({ length: fields }, (_, at) => [`f${at}`, 1]));
  const parse = (fields: number) =>
    parseRouted(rerankCodec, { model: "m", query: "q", documents: ["a"], ...more(fields) }, 0, true);
  expect(parse(1_997)).toMatchObject({ model: "m" });
  expect(() => parse(1_998)).toThrow(/more than 2000 fields/);
});

test("triggers of the local model", async () => {
  const refused = rerank({ query: "error:429", documents: ["a"], top_n: 1 });
  await expect(refused).rejects.toMatchObject({ code: "rate_limit_exceeded" });
});
