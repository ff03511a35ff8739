import { z } from "zod";
import { upstreamError } from "#errors";
import { embeddingsRequestOf } from "#formats";
import type { JsonObject } from "#json";
import { nextTurnIfLarge } from "#platform/concurrency/next-turn";
import { promptTokens, tokenUsage, withCallerFields } from "../conversion/index.ts";
import type { Answer, CallContext } from "../run-call/context.ts";
import { jsonCall } from "./json-call.ts";
import { withTenantIds } from "./tenant-ids.ts";

const answer = z.looseObject({
  data: z.array(z.looseObject({ index: z.int(), embedding: z.union([z.string(), z.array(z.number())]) })),
  usage: z.unknown().optional(),
});

/** The provider's answer in the requested encoding, sorted by index. Throws `upstreamError` if it is incomplete. */
export function completeEmbeddings(response: unknown, request: Readonly<Record<string, unknown>>, model: string) {
  const parsed = answer.safeParse(response);
  const { input } = request;
  // The tokens of one text are also a list.
  const expected = Array.isArray(input) && typeof input[0] !== "number" ? input.length : 1;
  const data = parsed.success ? parsed.data.data.toSorted((a, b) => a.index - b.index) : [];
  if (data.length !== expected || data.some((item, index) => item.index !== index))
    throw upstreamError("The upstream's response is not a list of embeddings.");
  const base64 = request["encoding_format"] === "base64";
  return {
    object: "list" as const,
    model,
    data: data.map(({ index, embedding }) => ({
      object: "embedding" as const,
      index,
      embedding: base64 ? toBase64(embedding) : toNumbers(embedding),
    })),
    usage: parsed.data?.usage,
  };
}

// OpenAI's clients decode base64 as little-endian float32, which is the byte order of all supported machines.
const toBase64 = (embedding: string | number[]): string =>
  typeof embedding === "string" ? embedding : Buffer.from(Float32Array.from(embedding).buffer).toString("base64");

function toNumbers(embedding: string | number[]): number[] {
  if (typeof embedding !== "string") return embedding;
  const bytes = Buffer.from(embedding, "base64");
  return Array.from({ length: bytes.length >> 2 }, (_, i) => bytes.readFloatLE(i * 4));
}

interface EmbeddingsCall {
  /** The request for `/v1/embeddings`. */
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

/** Maximum size of one embedding as JSON. */
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
