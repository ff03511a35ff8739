import type { Usage } from "#catalog";
import { estimateTokens, rerankOf, rerankSize } from "#formats";
import { completeRerank, rerankUsage } from "../conversion/index.ts";
import { jsonCall } from "./json-call.ts";

/** Documents in the order of their relevance, billed by the keys that the model has prices for. */
export const rerank = jsonCall("rerank", ({ request, payload: { requestId }, catalog }) => {
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
      const prices = catalog.pricing(model);
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
