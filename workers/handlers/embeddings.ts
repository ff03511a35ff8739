import { completeEmbeddings, promptTokens, tokenUsage } from "../conversion/index.ts";
import type { Answer, Attempt } from "../run-call.ts";

/** An embeddings call on an upstream that speaks the embeddings format. */
export async function embeddings(attempt: Attempt): Promise<Answer> {
  const { payload, model, request, upstreams, signal, disconnected, progress, log } = attempt;
  const response = await upstreams.once(
    model,
    signal,
    progress,
    async ({ provider, model }, signal) => {
      // After a failure no other provider is asked for a caller who is gone.
      disconnected.throwIfAborted();
      return provider.embed({ model, body: { ...request, model }, signal, log });
    },
    log,
  );
  const { usage, ...body } = completeEmbeddings(response, request, payload.model);
  const exact = tokenUsage(usage);
  const input = exact ? promptTokens(exact) : payload.inputEstimate;
  const text = JSON.stringify({ ...body, usage: { prompt_tokens: input, total_tokens: input } });
  return { text, usage: { input }, estimated: exact === undefined };
}
