import { describe, expect, test } from "vitest";
import { times } from "../support/money-setup.ts";
import { rerankService } from "../support/rerank-setup.ts";
import type { Customer } from "../support/service.ts";
import { entriesOf, entryOf, nanoUsd, refusal, refusalOf } from "../support/service-setup.ts";

const running = rerankService();

const local = "local/rerank";
const cohereModel = "cohere/rerank-v4.0-pro";
const jinaModel = "jina/jina-reranker-v3";
const query = "What is the capital of the United States?";
const documents = [
  "Carson City is the capital city of the American state of Nevada.",
  "The cat sat on the mat.",
  "Washington, D.C. is the capital of the United States.",
];
const request = { query, documents };

interface Answer {
  readonly id: string;
  readonly model: string;
  readonly results: readonly { index: number; relevance_score: number; document?: object }[];
  readonly meta: object;
  readonly usage: object;
}

async function rank(customer: Customer, body: object, path = "/v1/rerank") {
  const response = await customer.post(path, body);
  const answer = (await response.json()) as Answer;
  expect({ status: response.status, answer }).toMatchObject({ status: 200 });
  const entry = await entryOf(running.service, answer.id);
  return { answer, headers: response.headers, ...entry, costNanoUsd: -nanoUsd(entry.amount_usd) };
}

const indexes = ({ results }: Answer) => results.map(({ index }) => index);

describe("by model", () => {
  test("local: the words of the query decide, and searches are billed", async () => {
    const customer = await running.service.account("1");
    const { answer, costNanoUsd, request: entry } = await rank(customer, { model: local, ...request });
    expect(indexes(answer)).toEqual([2, 0, 1]);
    expect(answer.results.at(-1)?.relevance_score).toBeLessThan(0.5);
    expect(answer).toMatchObject({ object: "list", model: local, meta: { billed_units: { search_units: 1 } } });
    expect(entry).toMatchObject({ endpoint: "/v1/rerank", model: local, usage: { search: 1 }, estimated: false });
    expect(costNanoUsd).toBe(1_000_000n);
    // 101 documents, of which one is as long as two.
    const long = "capital ".repeat(600);
    const many = await rank(customer, {
      model: local,
      query,
      documents: [long, ...Array(100).fill("a city")],
      top_n: 1,
    });
    expect(indexes(many.answer)).toEqual([0]);
    expect([many.request.usage, many.costNanoUsd]).toEqual([{ search: 2 }, 2_000_000n]);
  });

  test("Cohere: what it reports is billed, to the nano-dollar, for both tiers", async () => {
    const meta = { billed_units: { search_units: 1 } };
    const results = times(3, (index) => ({ index, relevance_score: 0.1 * index }));
    running.cohere.respond({}, { body: { results, meta } });
    const first = await rank(await running.service.account("1"), { model: cohereModel, ...request, top_n: 2 });
    expect(first.answer).toMatchObject({
      meta: { api_version: { version: "2" }, ...meta },
      usage: { search_units: 1 },
    });
    expect(indexes(first.answer)).toEqual([2, 1]);
    expect([first.request.usage, first.costNanoUsd]).toEqual([{ search: 1 }, 2_500_000n]);
    const elite = await rank(await running.service.account("1", { tier: "elite" }), { model: cohereModel, ...request });
    expect(elite.costNanoUsd).toBe(2_250_000n);
    expect(running.cohere.requests[0]?.body).toEqual({
      model: "rerank-v4.0-pro",
      ...request,
      top_n: 2,
      return_documents: false,
    });
  });

  test("Jina: tokens, of which it reports the total", async () => {
    const {
      answer,
      costNanoUsd,
      request: entry,
    } = await rank(await running.service.account("1"), {
      model: jinaModel,
      ...request,
      top_n: 2,
    });
    expect(answer).toMatchObject({
      meta: { billed_units: { input_tokens: 21 } },
      usage: { prompt_tokens: 21, total_tokens: 21 },
    });
    expect(indexes(answer)).toEqual([2, 1]);
    expect(entry).toMatchObject({ usage: { input: 21 }, upstream: "jina", estimated: false });
    // 21 tokens at 0.05 USD for a million.
    expect(costNanoUsd).toBe(1_050n);
  });

  test("Jina refuses to cut documents: a 400 that names the field, and no charge", async () => {
    const customer = await running.service.account("1");
    const response = await customer.post("/v1/rerank", { model: jinaModel, ...request, max_tokens_per_doc: 5 });
    expect(await refusalOf(response)).toMatchObject({ status: 400, error: { param: "max_tokens_per_doc" } });
    await running.service.settled();
    expect(await customer.available()).toBe("1.00");
    await rank(customer, { model: cohereModel, ...request, max_tokens_per_doc: 5 });
    expect(running.cohere.requests[0]?.body).toMatchObject({ max_tokens_per_doc: 5 });
  });
});

describe("requests as clients send them", () => {
  // The cohere-ai client, version 8: `client.v2.rerank` and `client.rerank`.
  test("Cohere's, version 2", async () => {
    const body = { model: cohereModel, query, documents, top_n: 1, max_tokens_per_doc: 512, priority: 3 };
    const { answer, headers, request: entry } = await rank(await running.service.account("1"), body, "/v2/rerank");
    expect(answer.results).toEqual([{ index: 2, relevance_score: 3 / 1024 }]);
    expect(headers.get("x-ignored-params")).toBe("priority");
    expect(entry.endpoint).toBe("/v2/rerank");
  });

  test("Cohere's, version 1: objects, ranked by their fields, come back as they were", async () => {
    const objects = [
      { title: "Nevada", text: "Carson City", year: 1864 },
      { title: "Capital", text: "Washington" },
    ];
    const body = { model: cohereModel, query, documents: objects, return_documents: true, max_chunks_per_doc: 10 };
    const { answer, headers } = await rank(await running.service.account("1"), body);
    expect(answer.results.map(({ document }) => document)).toEqual([objects[1], objects[0]]);
    expect(headers.get("x-ignored-params")).toBe("max_chunks_per_doc");
    await rank(await running.service.account("1"), { ...body, rank_fields: ["title", "year"] });
    expect(running.cohere.requests.map((each) => each.body["documents"])).toEqual([
      ["Carson City", "Washington"],
      ["Nevada\n1864", "Capital"],
    ]);
  });

  test("Jina's and LiteLLM's: texts come back as objects", async () => {
    const body = { model: jinaModel, query, documents: [documents[0], { text: "Berlin" }], return_documents: true };
    const { answer } = await rank(await running.service.account("1"), { ...body, top_n: null });
    expect(answer.results.map(({ document }) => document)).toEqual([{ text: "Berlin" }, { text: documents[0] }]);
  });
});

test.each<[what: string, fields: object, param: string]>([
  ["no query", { query: undefined }, "query"],
  ["an empty query", { query: "" }, "query"],
  ["no documents", { documents: [] }, "documents"],
  ["1001 documents", { documents: Array(1_001).fill("a") }, "documents"],
  ["an empty document", { documents: ["a", " "] }, "documents[1]"],
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
  expect(await refusalOf(response)).toEqual(
    refusal({ status: 400, type: "invalid_request_error", code: "invalid_value", param }),
  );
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
        message: expect.stringContaining(`a model of ${endpoint},`),
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
    // After a 429 the upstream is not asked for that model for a while.
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

describe("money", () => {
  test("200 side by side are charged exactly", async () => {
    const customer = await running.service.account("1");
    const ask = () => customer.post("/v1/rerank", { model: local, ...request, top_n: 1 });
    const answers = await Promise.all(times(200, ask));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await running.service.settled()).toMatchObject({ ok: true, difference_usd: "0.00" });
    expect(await customer.available()).toBe("0.80");
    const entries = await entriesOf(running.service, customer);
    expect(entries.map(({ amount_usd }) => amount_usd)).toEqual(times(200, () => "-0.001"));
  });

  test("held for every chunk that the documents can be split into", async () => {
    const customer = await running.service.account("0.0075");
    const ask = (bytes: number) =>
      customer.post("/v1/rerank", { model: cohereModel, query: "a", documents: times(100, () => "b".repeat(bytes)) });
    // 100 documents in 300 chunks of 500 bytes each are three searches, in 400 are four.
    expect((await ask(1_499)).status).toBe(200);
    await running.service.settled();
    expect(await customer.available()).toBe("0.005");
    expect(await refusalOf(await ask(1_500))).toMatchObject({ status: 402, error: { code: "insufficient_balance" } });
    expect(running.cohere.requests).toHaveLength(1);
  });

  test("an Idempotency-Key: one provider call, one charge, equal answers", async () => {
    const customer = await running.service.account("1");
    const ask = async (body: object = {}) => {
      const init = { headers: { "idempotency-key": "key-1" } };
      const response = await customer.post("/v1/rerank", { model: cohereModel, ...request, ...body }, init);
      return { status: response.status, text: await response.text() };
    };
    const [first, ...others] = await Promise.all(times(20, () => ask()));
    expect(first).toMatchObject({ status: 200 });
    expect(others).toEqual(times(19, () => first));
    expect(await ask({ top_n: 1 })).toMatchObject({ status: 409 });
    await running.service.settled();
    expect(await customer.available()).toBe("0.9975");
    expect(running.cohere.requests).toHaveLength(1);
  });
});
