import { embeddingsRequestOf, type JsonObject } from "#formats";
import { nextTurnIfLarge } from "#platform/next-turn";
import { completeEmbeddings, promptTokens, tokenUsage, withCallerFields } from "../conversion/index.ts";
import type { Answer, CallContext } from "../run-call/context.ts";
import { jsonCall } from "./json-call.ts";
import { withTenantIds } from "./tenant-ids.ts";

interface EmbeddingsCall {
  /** For `/v1/embeddings`. */
  readonly request: JsonObject;
  readonly ignored: readonly (readonly [name: string, value: unknown])[];
  readonly answer: (completed: ReturnType<typeof completeEmbeddings>, tokens: number) => JsonObject;
}

/** Errors name these fields of Gemini's format. */
const geminiFields = { input: "content", dimensions: "outputDimensionality" };

function geminiCall(body: JsonObject, isBatch: boolean): EmbeddingsCall {
  const { request, others } = embeddingsRequestOf(body, isBatch);
  return {
    request,
    ignored: others,
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

/** As JSON, at most. */
const vectorBytes = 64 * 1024;

const embed = jsonCall("embed", (call) => {
  const { payload, account } = call;
  const { request, ignored, answer } = callOf(call);
  return {
    body: withTenantIds(request, account),
    ignored,
    async answer(response, model) {
      const completed = completeEmbeddings(response, request, model.id);
      await nextTurnIfLarge(completed.data.length * vectorBytes);
      const reported = tokenUsage(completed.usage);
      const input = reported ? promptTokens(reported) : payload.inputEstimate;
      return {
        text: JSON.stringify(answer(completed, input)),
        usage: { input },
        estimated: reported === undefined,
      };
    },
  };
});

/** An embeddings call on an upstream that speaks the embeddings format. */
export const embeddings = (call: CallContext): Promise<Answer> =>
  embed(call).catch((error: unknown) => {
    throw call.payload.format === "gemini" ? withCallerFields(error, geminiFields) : error;
  });
