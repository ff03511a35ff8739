import { z } from "zod";
import { countTokensRequest, geminiRequest, messagesRequest, responsesRequest } from "#formats";
import { errorAnswers, errorAnswersIn, idempotencyKey, json, paid, replayed } from "./openapi-errors.ts";

/** The bodies of the native formats are their providers' own: what is named here is what this service reads of them. */

const messagesError = z
  .object({
    type: z.literal("error"),
    error: z.object({ type: z.string(), message: z.string() }),
    request_id: z.string(),
  })
  .meta({ id: "MessagesError" });

const geminiError = z
  .object({ error: z.object({ code: z.int(), message: z.string(), status: z.string() }) })
  .meta({ id: "GeminiError" });

const ignored = z.object({
  "x-request-id": z.string(),
  "x-xm-cost-usd": z.string().describe("What the request cost; absent on streams").optional(),
  "x-ignored-params": z.string().describe("Hints that the model's upstream does not take").optional(),
});
const replayable = ignored.extend({ "idempotent-replayed": replayed });
const counted = z.object({
  "x-request-id": z.string(),
  "x-xm-token-count": z.enum(["provider", "estimate"]).describe("Who counted"),
});

const message = z
  .looseObject({
    id: z.string(),
    type: z.literal("message"),
    role: z.literal("assistant"),
    model: z.string(),
    content: z.array(z.looseObject({ type: z.string() })),
    stop_reason: z.string().nullable(),
    usage: z.looseObject({ input_tokens: z.int(), output_tokens: z.int() }),
  })
  .meta({ id: "MessagesAnswer" });

const response = z
  .looseObject({
    id: z.string(),
    object: z.literal("response"),
    model: z.string(),
    status: z.string(),
    output: z.array(z.looseObject({ type: z.string() })),
    usage: z.looseObject({ input_tokens: z.int(), output_tokens: z.int(), total_tokens: z.int() }),
  })
  .meta({ id: "ResponsesAnswer" });

const generated = z
  .looseObject({
    candidates: z.array(z.looseObject({})).optional(),
    usageMetadata: z
      .looseObject({ promptTokenCount: z.int().optional(), totalTokenCount: z.int().optional() })
      .optional(),
    modelVersion: z.string().optional(),
  })
  .meta({ id: "GeminiAnswer" });

const events = { "text/event-stream": { schema: z.string() } };
const messagesKeys = [{ anthropicKey: [] }, { bearer: [] }];
const geminiKeys = [{ geminiKey: [] }, { geminiQueryKey: [] }, { bearer: [] }];
const modelPath = z.object({ model: z.string().meta({ example: "local/chat" }) });
const geminiErrors = errorAnswersIn(geminiError, paid);

export const nativePaths = {
  "/v1/messages": {
    post: {
      operationId: "createMessage",
      summary: "Anthropic's Messages format, for that provider's models",
      security: messagesKeys,
      requestParams: { header: idempotencyKey },
      requestBody: { required: true, content: json(messagesRequest) },
      responses: {
        "200": {
          description: "The message, or its events",
          headers: replayable,
          content: { ...json(message), ...events },
        },
        ...errorAnswersIn(messagesError, [...paid, 409]),
      },
    },
  },
  "/v1/messages/count_tokens": {
    post: {
      operationId: "countMessageTokens",
      summary: "The tokens of a message; free",
      security: messagesKeys,
      requestBody: { required: true, content: json(countTokensRequest) },
      responses: {
        "200": { description: "The count", headers: counted, content: json(z.object({ input_tokens: z.int() })) },
        ...errorAnswersIn(messagesError, paid),
      },
    },
  },
  "/v1/responses": {
    post: {
      operationId: "createResponse",
      summary: "OpenAI's Responses format, for that provider's models; nothing is stored",
      requestParams: { header: idempotencyKey },
      requestBody: { required: true, content: json(responsesRequest) },
      responses: {
        "200": {
          description: "The response, or its events",
          headers: replayable,
          content: { ...json(response), ...events },
        },
        ...errorAnswers(...paid, 409),
      },
    },
  },
  "/v1beta/models/{model}:generateContent": {
    post: {
      operationId: "generateContent",
      summary: "Google's Gemini format, for every chat model; also under /v1",
      security: geminiKeys,
      requestParams: { path: modelPath, header: idempotencyKey },
      requestBody: { required: true, content: json(geminiRequest) },
      responses: {
        "200": { description: "The answer", headers: replayable, content: json(generated) },
        ...geminiErrors,
        ...errorAnswersIn(geminiError, [409]),
      },
    },
  },
  "/v1beta/models/{model}:streamGenerateContent": {
    post: {
      operationId: "streamGenerateContent",
      summary: "The same as a stream: server-sent events with `alt=sse`, else one JSON array",
      security: geminiKeys,
      requestParams: { path: modelPath, query: z.object({ alt: z.enum(["sse", "json"]).optional() }) },
      requestBody: { required: true, content: json(geminiRequest) },
      responses: {
        "200": {
          description: "Pieces of the answer",
          headers: ignored,
          content: { ...json(z.array(generated)), ...events },
        },
        ...geminiErrors,
      },
    },
  },
  "/v1beta/models/{model}:countTokens": {
    post: {
      operationId: "countTokens",
      summary: "The tokens of a request; free",
      security: geminiKeys,
      requestParams: { path: modelPath },
      requestBody: {
        required: true,
        content: json(z.looseObject({ contents: z.array(z.looseObject({})).optional() })),
      },
      responses: {
        "200": { description: "The count", headers: counted, content: json(z.object({ totalTokens: z.int() })) },
        ...geminiErrors,
      },
    },
  },
  "/v1beta/models": {
    get: {
      operationId: "listGeminiModels",
      summary: "The chat models as Google's API lists them",
      security: [],
      requestParams: { query: z.object({ pageSize: z.int().optional(), pageToken: z.string().optional() }) },
      responses: {
        "200": {
          description: "A page of models",
          content: json(z.looseObject({ models: z.array(z.looseObject({ name: z.string() })) })),
        },
        ...errorAnswersIn(geminiError, [400]),
      },
    },
  },
  "/v1beta/models/{model}": {
    get: {
      operationId: "getGeminiModel",
      summary: "One of them",
      security: [],
      requestParams: { path: modelPath },
      responses: {
        "200": { description: "The model", content: json(z.looseObject({ name: z.string() })) },
        ...errorAnswersIn(geminiError, [404]),
      },
    },
  },
} satisfies Record<string, object>;
