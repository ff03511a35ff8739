import { z } from "zod";
import type { Usage } from "#catalog";
import { upstreamError } from "#errors";
import { estimateTokens, rerankOf, rerankSize } from "#formats";
import { isCount, object } from "#json";
import { jsonCall } from "./json-call.ts";

const answer = z.looseObject({
  results: z.array(z.looseObject({ index: z.int().nonnegative(), relevance_score: z.number() })),
});

/**
 * The provider's results, the most relevant first and as many as requested, with the caller's documents if requested. Throws
 * `upstreamError` unless they refer to different documents of the request.
 */
function completeRerank(
  response: unknown,
  { documents, topN, returnsDocuments }: Pick<ReturnType<typeof rerankOf>, "documents" | "topN" | "returnsDocuments">,
) {
  const parsed = answer.safeParse(response);
  const results = parsed.data?.results ?? [];
  const indexes = new Set(results.map(({ index }) => index));
  if (
    results.length < topN ||
    results.length > documents.length ||
    indexes.size !== results.length ||
    Math.max(...indexes) >= documents.length
  )
    throw upstreamError("The upstream's response does not rank the documents.");
  return results
    .toSorted((a, b) => b.relevance_score - a.relevance_score || a.index - b.index)
    .slice(0, topN)
    .map(({ index, relevance_score }) => {
      const document = documents[index];
      return {
        index,
        relevance_score,
        ...(returnsDocuments && { document: typeof document === "string" ? { text: document } : document }),
      };
    });
}

/**
 * Reads the usage that Cohere (`meta.billed_units`) or Jina (`usage`, often only a total) reports. A missing count is
 * undefined.
 */
function rerankUsage(response: unknown): { readonly search?: number; readonly input?: number } {
  const { meta, usage } = object(response);
  const billed = object(object(meta)["billed_units"]);
  const { total_tokens, prompt_tokens } = object(usage);
  const search = billed["search_units"];
  const input = [billed["input_tokens"], total_tokens, prompt_tokens].find((tokens) => isCount(tokens) && tokens > 0);
  return { ...(isCount(search) && { search }), ...(isCount(input) && { input }) };
}

/** Ranks documents by relevance, billed by the keys that the model has prices for. */
export const rerank = jsonCall("rerank", ({ request, payload: { requestId } }) => {
  const call = rerankOf(request);
  const { query, texts, topN, maxTokensPerDoc, others } = call;
  return {
    body: {
      query,
      documents: texts,
      top_n: topN,
      return_documents: false,
      ...(maxTokensPerDoc !== undefined && { max_tokens_per_doc: maxTokensPerDoc }),
    },
    ignored: others,
    answer(response, model) {
      const results = completeRerank(response, call);
      const prices = model.pricing;
      const reported = rerankUsage(response);
      const estimate = rerankSize(call, (text) => estimateTokens(Buffer.byteLength(text)));
      const { search = estimate.searches, input = estimate.tokens } = reported;
      const usage: Usage = { ...("search" in prices && { search }), ...("input" in prices && { input }) };
      const tokens = usage.input ?? reported.input;
      const answer = {
        id: requestId,
        object: "list",
        model: model.id,
        results,
        meta: {
          api_version: { version: "2" },
          billed_units: {
            ...(usage.search !== undefined && { search_units: usage.search }),
            ...(usage.input !== undefined && { input_tokens: usage.input }),
          },
        },
        usage: {
          ...(usage.search !== undefined && { search_units: usage.search }),
          ...(tokens !== undefined && { prompt_tokens: tokens, total_tokens: tokens }),
        },
      };
      return {
        text: JSON.stringify(answer),
        usage,
        estimated: Object.keys(usage).some((key) => reported[key as keyof typeof reported] === undefined),
      };
    },
  };
});
