import { completeEmbeddings, promptTokens, tokenUsage } from "../conversion/index.ts";
import type { Answer, CallContext } from "../run-call/context.ts";
import { withTenantIds } from "./tenant-ids.ts";

/** An embeddings call on an upstream that speaks the embeddings format. */
export async function embeddings(call: CallContext): Promise<Answer> {
  const { payload, request, account, upstreams, disconnected, log } = call;
  const response = await upstreams.once(call, async ({ upstream, model }, signal) => {
    // After a failure no other upstream is tried for a disconnected caller.
    disconnected.throwIfAborted();
    return upstream.provider.embed({ model, body: { ...withTenantIds(request, account), model }, signal, log });
  });
  const { usage, ...body } = completeEmbeddings(response, request, payload.model);
  const reported = tokenUsage(usage);
  const input = reported ? promptTokens(reported) : payload.inputEstimate;
  const text = JSON.stringify({ ...body, usage: { prompt_tokens: input, total_tokens: input } });
  return { text, usage: { input }, estimated: reported === undefined };
}
