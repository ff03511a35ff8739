import { embeddingsRequestOf, type JsonObject } from "#formats";
import { completeEmbeddings, ignoredParams, promptTokens, tokenUsage, withCallerFields } from "../conversion/index.ts";
import type { Answer, CallContext } from "../run-call/context.ts";
import { headersOf } from "./convert.ts";
import { withTenantIds } from "./tenant-ids.ts";

interface EmbeddingsCall {
  /** For `/v1/embeddings`. */
  readonly request: JsonObject;
  readonly ignored: readonly string[];
  readonly answer: (completed: ReturnType<typeof completeEmbeddings>, tokens: number) => JsonObject;
}

/** Errors name these fields of Gemini's format. */
const geminiFields = { input: "content", dimensions: "outputDimensionality" };

function geminiCall(body: JsonObject, isBatch: boolean): EmbeddingsCall {
  const { request, others } = embeddingsRequestOf(body, isBatch);
  const ignored = ignoredParams();
  for (const [name, value] of others) ignored.add(name, value);
  return {
    request,
    ignored: ignored.names(),
    answer({ data }, promptTokenCount) {
      const embeddings = data.map(({ embedding }) => ({ values: embedding }));
      return { ...(isBatch ? { embeddings } : { embedding: embeddings[0] }), usageMetadata: { promptTokenCount } };
    },
  };
}

function callOf({ payload, request }: CallContext): EmbeddingsCall {
  if (payload.format === "gemini") return geminiCall(request, payload.endpoint.endsWith(":batchEmbedContents"));
  return {
    request,
    ignored: [],
    answer: (completed, tokens) => ({ ...completed, usage: { prompt_tokens: tokens, total_tokens: tokens } }),
  };
}

/** An embeddings call on an upstream that speaks the embeddings format. */
export async function embeddings(call: CallContext): Promise<Answer> {
  const { payload, account, upstreams, log } = call;
  const { request, ignored, answer } = callOf(call);
  const body = withTenantIds(request, account);
  const completed = await upstreams
    .once(call, async ({ upstream, model, target }, signal) => {
      const response = await upstream.provider.embed({ model, body: { ...body, model }, signal, log });
      return completeEmbeddings(response, request, target.model.id);
    })
    .catch((error: unknown) => {
      throw payload.format === "gemini" ? withCallerFields(error, geminiFields) : error;
    });
  const reported = tokenUsage(completed.usage);
  const input = reported ? promptTokens(reported) : payload.inputEstimate;
  return {
    text: JSON.stringify(answer(completed, input)),
    usage: { input },
    estimated: reported === undefined,
    ...headersOf(call, ignored),
  };
}
