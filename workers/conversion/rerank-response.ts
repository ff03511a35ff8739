import { z } from "zod";
import { upstreamError } from "#errors";
import { isCount, object, type rerankOf } from "#formats";

const answer = z.looseObject({
  results: z.array(z.looseObject({ index: z.int().nonnegative(), relevance_score: z.number() })),
});

/**
 * The provider's results, the most relevant first and as many as requested, with the caller's documents if it asked for
 * them. Throws `upstreamError` unless they are of different documents of the request.
 */
export function completeRerank(
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
    throw upstreamError("The upstream's answer does not rank the documents.");
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

/** As Cohere reports it (`meta.billed_units`), or Jina (`usage`, often with a total alone). A missing count is undefined. */
export function rerankUsage(response: unknown): { readonly search?: number; readonly input?: number } {
  const { meta, usage } = object(response);
  const billed = object(object(meta)["billed_units"]);
  const { total_tokens, prompt_tokens } = object(usage);
  const search = billed["search_units"];
  const input = [billed["input_tokens"], total_tokens, prompt_tokens].find((tokens) => isCount(tokens) && tokens > 0);
  return { ...(isCount(search) && { search }), ...(isCount(input) && { input }) };
}
