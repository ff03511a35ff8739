import { expect } from "vitest";
import { startMockCohere, startMockJina } from "./mock-rerank.ts";
import { ofFile } from "./of-file.ts";
import type { Client, Customer } from "./service.ts";
import { entryOf, nanoUsd, startWithProvider } from "./service-setup.ts";

/** One service for all tests of a file, with the mocks of both rerank APIs. */
export const rerankService = () =>
  ofFile(
    async (onEnd) => {
      const [cohere, jina] = [await startMockCohere(), await startMockJina()];
      const running = await startWithProvider(
        {
          COHERE_API_KEY: "co-operator",
          COHERE_BASE_URL: cohere.url,
          JINA_API_KEY: "jina-operator",
          JINA_BASE_URL: jina.url,
        },
        onEnd,
      );
      for (const server of [cohere, jina, running.provider]) onEnd(() => server.close());
      return { ...running, cohere, jina };
    },
    ({ cohere, jina, provider }) => {
      for (const server of [cohere, jina, provider]) server.reset();
    },
  );

export const localRerank = "local/rerank";
export const cohereModel = "cohere/rerank-v4.0-pro";
export const jinaModel = "jina/jina-reranker-v3";
export const query = "What is the capital of the United States?";
export const documents = [
  "Carson City is the capital city of the American state of Nevada.",
  "The cat sat on the mat.",
  "Washington, D.C. is the capital of the United States.",
];
export const request = { query, documents };

export interface Answer {
  readonly id: string;
  readonly model: string;
  readonly results: readonly { index: number; relevance_score: number; document?: object }[];
  readonly meta: object;
  readonly usage: object;
}

/** A successful call, with its ledger entry. */
export async function rank(service: Client, customer: Customer, body: object, path = "/v1/rerank") {
  const response = await customer.post(path, body);
  const answer = (await response.json()) as Answer;
  expect({ status: response.status, answer }).toMatchObject({ status: 200 });
  const entry = await entryOf(service, answer.id);
  return { answer, headers: response.headers, ...entry, costNanoUsd: -nanoUsd(entry.amount_usd) };
}
