import { describe, expect, test } from "vitest";
import { times } from "../support/money-setup.ts";
import {
  type Answer,
  cohereModel,
  documents,
  jinaModel,
  localRerank as local,
  query,
  rank as rankAt,
  request,
  rerankService,
} from "../support/rerank-setup.ts";
import type { Customer } from "../support/service.ts";
import { refusalOf } from "../support/service-setup.ts";

const running = rerankService();

const rank = (customer: Customer, body: object, path?: string) => rankAt(running.service, customer, body, path);
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
    // 101 documents, one of which is as long as two.
    const long = "capital ".repeat(600);
    const many = await rank(customer, {
      model: local,
      query,
      documents: [long, ...Array(100).fill("a city")],
      top_n: 1,
    });
    expect(indexes(many.answer)).toEqual([0]);
    expect([many.request.usage, many.costNanoUsd]).toEqual([{ search: 2 }, 2_000_000n]);
    // An empty document does not fail the others.
    const { answer: withEmpty } = await rank(customer, { model: local, query, documents: ["", ...documents] });
    expect(indexes(withEmpty)).toEqual([3, 1, 2, 0]);
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
    // 21 tokens at 0.05 USD per million.
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

describe("money", () => {
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
