import { z } from "zod";
import { batchEmbedContentsRequest, embedContentRequest, geminiRequest } from "#formats";
import {
  countHeaders,
  idempotencyKey,
  ignoredParams,
  nativeHeaders,
  storedCallHeaders,
  storedNativeHeaders,
} from "./headers.ts";
import { operation, paidErrors } from "./operation.ts";

const geminiError = z
  .object({ error: z.object({ code: z.int(), message: z.string(), status: z.string() }) })
  .meta({ id: "GeminiError" });

const generated = z
  .looseObject({
    candidates: z.array(z.looseObject({})).optional(),
    usageMetadata: z
      .looseObject({ promptTokenCount: z.int().optional(), totalTokenCount: z.int().optional() })
      .optional(),
    modelVersion: z.string().optional(),
  })
  .meta({ id: "GeminiAnswer" });

const geminiModel = z.looseObject({ name: z.string() });

const contentEmbedding = z.object({ values: z.array(z.number()) }).meta({ id: "ContentEmbedding" });
const usageMetadata = z.object({ promptTokenCount: z.int() });

const embedded = z.object({ embedding: contentEmbedding, usageMetadata }).meta({ id: "EmbedContentResponse" });

const batchEmbedded = z
  .object({ embeddings: z.array(contentEmbedding), usageMetadata })
  .meta({ id: "BatchEmbedContentsResponse" });

const native = {
  security: [{ geminiKey: [] }, { geminiQueryKey: [] }, { bearer: [] }],
  errors: paidErrors,
  errorBody: geminiError,
};

const modelPath = z.object({ model: z.string().meta({ example: "local/chat" }) });
const embeddingsModelPath = z.object({ model: z.string().meta({ example: "local/embeddings" }) });

const embedHeaders = storedCallHeaders.extend({ "x-ignored-params": ignoredParams });

export const gemini = {
  "POST /v1beta/models/{model}:generateContent": operation(
    "generateContent",
    "Google's Gemini format, for every chat model; also under /v1",
    {
      ...native,
      params: { path: modelPath, header: idempotencyKey },
      body: geminiRequest,
      ok: ["The answer", generated, storedNativeHeaders],
      errors: [...paidErrors, 409],
    },
  ),
  "POST /v1beta/models/{model}:streamGenerateContent": operation(
    "streamGenerateContent",
    "The same as a stream: server-sent events with `alt=sse`, else one JSON array",
    {
      ...native,
      params: { path: modelPath, query: z.object({ alt: z.enum(["sse", "json"]).optional() }) },
      body: geminiRequest,
      okOrEvents: ["Pieces of the answer", z.array(generated), nativeHeaders],
    },
  ),
  "POST /v1beta/models/{model}:countTokens": operation("countTokens", "The tokens of a request; free", {
    ...native,
    params: { path: modelPath },
    body: z.union([geminiRequest, z.looseObject({ generateContentRequest: geminiRequest })]),
    ok: ["The count", z.object({ totalTokens: z.int() }), countHeaders],
  }),
  "POST /v1beta/models/{model}:embedContent": operation(
    "embedContent",
    "The embedding of a content in Google's format, by every embeddings model; also under /v1",
    {
      ...native,
      params: { path: embeddingsModelPath, header: idempotencyKey },
      body: embedContentRequest,
      ok: ["The embedding", embedded, embedHeaders],
      errors: [...paidErrors, 409],
    },
  ),
  "POST /v1beta/models/{model}:batchEmbedContents": operation(
    "batchEmbedContents",
    "The embeddings of up to 256 contents; also under /v1",
    {
      ...native,
      params: { path: embeddingsModelPath, header: idempotencyKey },
      body: batchEmbedContentsRequest,
      ok: ["The embeddings, in the order of the requests", batchEmbedded, embedHeaders],
      errors: [...paidErrors, 409],
    },
  ),
  "GET /v1beta/models": operation("listGeminiModels", "The chat models as Google's API lists them", {
    ...native,
    security: [],
    params: {
      query: z.object({
        pageSize: z.int32().min(0).optional().describe("0: the default, 50; more than 1000 is 1000"),
        pageToken: z.string().optional().describe("The `nextPageToken` of the page before"),
      }),
    },
    ok: ["A page of models", z.looseObject({ models: z.array(geminiModel) })],
    errors: [400],
  }),
  "GET /v1beta/models/{model}": operation("getGeminiModel", "One of them", {
    ...native,
    security: [],
    params: { path: modelPath },
    ok: ["The model", geminiModel],
    errors: [404],
  }),
};
