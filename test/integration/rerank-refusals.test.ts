import { describe, expect, test } from "vitest";
import { times } from "../support/money-setup.ts";
import { cohereModel, localRerank as local, rank as rankAt, request, rerankService } from "../support/rerank-setup.ts";
import type { Customer } from "../support/service.ts";
import { invalidValue, nanoUsd, refusal, refusalOf } from "../support/service-setup.ts";

const running = rerankService();
const rank = (customer: Customer, body: object) => rankAt(running.service, customer, body);

test.each<[what: string, fields: object, param: string]>([
  ["no query", { query: undefined }, "query"],
  ["an empty query", { query: "" }, "query"],
  ["no documents", { documents: [] }, "documents"],
  ["1001 documents", { documents: Array(1_001).fill("a") }, "documents"],
  ["a number as document", { documents: ["a", 1] }, "documents[1]"],
  ["an object without a text", { documents: [{ title: "a" }] }, "documents[0].text"],
  ["an object without the fields", { documents: [{ text: "a" }], rank_fields: ["title"] }, "documents[0]"],
  ["an image", { documents: ["a", { image: "https://pictures.test/a.png" }] }, "documents[1].image"],
  ["an image beside a text", { documents: [{ text: "a", image: "aGk=" }] }, "documents[0].image"],
  ["no results", { top_n: 0 }, "top_n"],
  ["a part of a result", { top_n: 1.5 }, "top_n"],
  ["no tokens", { max_tokens_per_doc: 0 }, "max_tokens_per_doc"],
  ["no model", { model: undefined }, "model"],
])("refuses %s, names the field and charges nothing", async (_what, fields, param) => {
  const customer = await running.service.account("1");
  const response = await customer.post("/v1/rerank", { model: cohereModel, ...request, ...fields });
  expect(await refusalOf(response)).toEqual(refusal(invalidValue(param)));
  expect([running.cohere.requests, await customer.ledger("usage")]).toEqual([[], []]);
});

describe("models of other endpoints", () => {
  const content = { messages: [{ role: "user", content: "Hi" }], input: "Hi", ...request };

  test.each([
    ["/v1/rerank", "local/chat", "/v1/chat/completions"],
    ["/v2/rerank", "local/embeddings", "/v1/embeddings"],
    ["/v1/moderations", local, "/v1/rerank"],
    ["/v1/chat/completions", local, "/v1/rerank"],
    ["/v1/embeddings", local, "/v1/rerank"],
    ["/v1/embeddings", "local/moderation", "/v1/moderations"],
    ["/v1/responses", "local/moderation", "/v1/moderations"],
  ])("%s with %s: 400 that names %s", async (path, model, endpoint) => {
    const customer = await running.service.account("1");
    expect(await refusalOf(await customer.post(path, { ...content, model }))).toMatchObject({
      status: 400,
      error: {
        code: "model_not_supported",
        param: "model",
        message: expect.stringContaining(`served at ${endpoint},`),
      },
    });
  });

  test("the media endpoint, too", async () => {
    const customer = await running.service.account("1");
    const response = await customer.post("/v1/media/generations", { model: local, input: request });
    expect(await refusalOf(response)).toMatchObject({ status: 400, error: { code: "model_not_supported" } });
  });

  test.each([
    ["rerank-v3.5", "cohere/rerank-v3.5"],
    ["local/rank", undefined],
    ["omni-moderation-latest", undefined],
    ["jina-reranker-v3", "jina/jina-reranker-v3"],
  ])("404 for %s, suggesting %s", async (model, suggested) => {
    const customer = await running.service.account("1");
    const { status, error } = await refusalOf(await customer.post("/v1/rerank", { model, ...request }));
    expect([status, /Did you mean '([^']+)'/.exec(error.message)?.[1]]).toEqual([404, suggested]);
  });

  test("the list of models names the endpoints", async () => {
    const list = await Array.fromAsync((await running.service.account("0")).openai.models.list());
    const endpoints = Object.fromEntries(list.map((model) => [model.id, Reflect.get(model, "endpoint") as string]));
    expect(endpoints).toMatchObject({
      [local]: "/v1/rerank",
      [cohereModel]: "/v1/rerank",
      "local/moderation": "/v1/moderations",
    });
  });
});

describe("an upstream's answer is checked", () => {
  const score = (index: unknown, relevance_score: unknown = 0.5) => ({ index, relevance_score });
  const meta = { billed_units: { search_units: 1 } };

  test.each<[what: string, body: unknown]>([
    ["no results", { meta }],
    ["too few", { results: [score(0), score(1)] }],
    ["too many", { results: times(4, (index) => score(index)) }],
    ["a document twice", { results: [score(0), score(1), score(1)] }],
    ["a document that there is not", { results: [score(0), score(1), score(3)] }],
    ["an index below 0", { results: [score(0), score(1), score(-1)] }],
    ["an index that is no number", { results: [score(0), score(1), score("2")] }],
    ["a score that is no number", { results: [score(0), score(1), score(2, "NaN")] }],
    [
      "a score without bound",
      `{"results": [{"index": 0, "relevance_score": 1e999}, {"index": 1, "relevance_score": 1}, {"index": 2, "relevance_score": 1}]}`,
    ],
    ["text", "oops"],
  ])("%s: 502, and no charge", async (_what, body) => {
    const customer = await running.service.account("1");
    running.cohere.respond({ body });
    const response = await customer.post("/v1/rerank", { model: cohereModel, ...request });
    expect(await refusalOf(response)).toMatchObject({ status: 502, error: { code: "upstream_error" } });
    await running.service.settled();
    expect(await customer.available()).toBe("1.00");
  });

  test.each([
    [401, 502, "upstream_error"],
    [402, 502, "upstream_error"],
    [429, 503, "no_capacity"],
    [500, 502, "upstream_error"],
    [504, 504, "upstream_timeout"],
  ])("its status %i: %i, and no charge", async (status, expected, code) => {
    const customer = await running.service.account("1");
    running.jina.respond({ status, body: { detail: "secret" } });
    // After a 429 the upstream is not used for that model for a while.
    const model = status === 429 ? "jina/jina-reranker-v3.5" : "jina/jina-reranker-v2-base-multilingual";
    const refused = await refusalOf(await customer.post("/v1/rerank", { model, ...request }));
    expect(refused).toMatchObject({ status: expected, error: { code } });
    expect(refused.error.message).not.toContain("secret");
    await running.service.settled();
    expect(await customer.available()).toBe("1.00");
  });

  test("its order and documents are not believed", async () => {
    const results = [score(1, 0.2), score(0, 0.9), score(2, 0.9)].map((each) => ({
      ...each,
      document: { text: "ad" },
    }));
    running.cohere.respond({ body: { results, meta } });
    const { answer } = await rank(await running.service.account("1"), { model: cohereModel, ...request, top_n: 2 });
    expect(answer.results).toEqual([score(0, 0.9), score(2, 0.9)]);
  });

  test("usage beyond what the call can cost is charged no further than the hold", async () => {
    const customer = await running.service.account("1");
    const results = times(3, (index) => score(index));
    running.cohere.respond({ body: { results, meta: { billed_units: { search_units: 900_000_000 } } } });
    const { costNanoUsd, request: entry } = await rank(customer, { model: cohereModel, ...request });
    expect(costNanoUsd).toBe(2_500_000n);
    expect(nanoUsd(entry.shortfall_usd)).toBeGreaterThan(0n);
  });

  test.each([
    [cohereModel, { search: 1 }, 2_500_000n],
    // A quarter of the bytes: 36 tokens of documents, and three times 11 of the query.
    ["cohere/rerank-v5.0-pro", { input: 69 }, 3_450n],
  ])("%s without usage: estimated", async (model, usage, cost) => {
    running.cohere.respond({ body: { results: times(3, (index) => score(index)) } });
    const { costNanoUsd, request: entry } = await rank(await running.service.account("1"), { model, ...request });
    expect(entry).toMatchObject({ usage, estimated: true });
    expect(costNanoUsd).toBe(cost);
  });
});
