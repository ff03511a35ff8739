import { finishEmbeddings, tokenUsage } from "#formats";
import type { Answer, Attempt } from "../call.ts";

/** An embeddings call on an upstream that speaks the embeddings format. */
export async function embeddings(attempt: Attempt): Promise<Answer> {
  const { payload, model, request, upstreams, signal, progress, log } = attempt;
  const response = await upstreams.once(
    model,
    signal,
    progress,
    (provider, upstreamModel, signal) => provider.embed({ body: { ...request, model: upstreamModel }, signal, log }),
    log,
  );
  const { usage, ...body } = finishEmbeddings(response, request, payload.model);
  const exact = tokenUsage(usage);
  const input = exact ? exact.input + exact.cached_input + exact.cache_write : payload.inputEstimate;
  const text = JSON.stringify({ ...body, usage: { prompt_tokens: input, total_tokens: input } });
  return { text, usage: { input }, estimated: exact === undefined };
}
