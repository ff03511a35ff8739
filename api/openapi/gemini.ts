import { z } from "zod";
import { batchEmbedContentsRequest, embedContentRequest, geminiRequest } from "#formats";
import { countHeaders, idempotencyKey, storedRoutedHeaders, streamHeaders } from "../http/openapi/headers.ts";
import { type Group, operation, paidErrors } from "../http/openapi/operation.ts";
import { geminiModelOperations } from "../routes/models.ts";

const tokens = z.int().optional();

const generated = z
  .looseObject({
    candidates: z
      .array(
        z.looseObject({
          content: geminiRequest.shape.contents.element.optional(),
          finishReason: z.string().optional().describe("`STOP`, `MAX_TOKENS`, `SAFETY`, or another of Google's"),
          finishMessage: z.string().optional(),
          index: z.int().optional(),
        }),
      )
      .optional(),
    usageMetadata: z
      .looseObject({
        promptTokenCount: tokens,
        candidatesTokenCount: tokens,
        totalTokenCount: tokens,
        cachedContentTokenCount: tokens,
        thoughtsTokenCount: tokens,
      })
      .optional(),
    modelVersion: z.string().optional(),
    responseId: z.string().optional(),
  })
  .meta({ id: "GeminiAnswer", description: "Of a stream: one event, or one element of the array" });

const contentEmbedding = z.object({ values: z.array(z.number()) }).meta({ id: "ContentEmbedding" });
const usageMetadata = z.object({ promptTokenCount: z.int() });

const embedded = z.object({ embedding: contentEmbedding, usageMetadata }).meta({ id: "EmbedContentResponse" });

const batchEmbedded = z
  .object({ embeddings: z.array(contentEmbedding), usageMetadata })
  .meta({ id: "BatchEmbedContentsResponse" });

const native = {
  security: [{ geminiKey: [] }, { geminiQueryKey: [] }, { bearer: [] }],
  errorFormat: "gemini" as const,
  isCall: true,
};

const modelPath = z.object({ model: z.string().meta({ example: "local/chat" }) });
const embeddingsModelPath = z.object({ model: z.string().meta({ example: "local/embeddings" }) });

const question = { contents: [{ role: "user", parts: [{ text: "Say hello." }] }] };
const text4 = { content: { parts: [{ text: "A text" }] }, outputDimensionality: 4 };

export const gemini: Group = {
  name: "Gemini",
  description: "Google's Gemini format, by every model for chat or embeddings; also under `/v1`",
  operations: {
    "POST /v1beta/models/{model}:generateContent": operation("generateContent", "An answer of a chat model", {
      ...native,
      params: { path: modelPath, header: idempotencyKey },
      body: geminiRequest,
      examples: {
        text: { summary: "A question", value: question },
        tools: {
          summary: "A function that the model must call",
          value: {
            contents: [{ role: "user", parts: [{ text: "How is the weather in Oslo?" }] }],
            tools: [
              {
                functionDeclarations: [
                  {
                    name: "get_weather",
                    parameters: { type: "OBJECT", properties: { city: { type: "STRING" } }, required: ["city"] },
                  },
                ],
              },
            ],
            toolConfig: { functionCallingConfig: { mode: "ANY" } },
          },
        },
      },
      ok: ["The answer", generated, storedRoutedHeaders],
      errors: [...paidErrors, 409],
    }),
    "POST /v1beta/models/{model}:streamGenerateContent": operation(
      "streamGenerateContent",
      "The same as a stream: server-sent events with `alt=sse`, else one JSON array",
      {
        ...native,
        params: { path: modelPath, query: z.object({ alt: z.enum(["sse", "json"]).optional() }) },
        body: geminiRequest,
        examples: { text: { summary: "A question", value: question } },
        okOrEvents: ["Pieces of the answer", z.array(generated), streamHeaders],
        event: generated,
        errors: paidErrors,
      },
    ),
    "POST /v1beta/models/{model}:countTokens": operation("countTokens", "The tokens of a request; free", {
      ...native,
      params: { path: modelPath },
      body: z.union([geminiRequest, z.looseObject({ generateContentRequest: geminiRequest })]),
      examples: { text: { summary: "A question", value: question } },
      ok: ["The count", z.object({ totalTokens: z.int() }), countHeaders],
      errors: paidErrors,
    }),
    "POST /v1beta/models/{model}:embedContent": operation("embedContent", "The embedding of a content", {
      ...native,
      params: { path: embeddingsModelPath, header: idempotencyKey },
      body: embedContentRequest,
      examples: { text: { summary: "A text", value: text4 } },
      ok: ["The embedding", embedded, storedRoutedHeaders],
      errors: [...paidErrors, 409],
    }),
    "POST /v1beta/models/{model}:batchEmbedContents": operation(
      "batchEmbedContents",
      "The embeddings of up to 256 contents",
      {
        ...native,
        params: { path: embeddingsModelPath, header: idempotencyKey },
        body: batchEmbedContentsRequest,
        examples: { text: { summary: "Two texts", value: { requests: [text4, text4] } } },
        ok: ["The embeddings, in the order of the requests", batchEmbedded, storedRoutedHeaders],
        errors: [...paidErrors, 409],
      },
    ),
    ...geminiModelOperations,
  },
};
