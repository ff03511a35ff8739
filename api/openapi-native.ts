import { z } from "zod";
import { countTokensRequest, geminiRequest, messagesRequest, responsesRequest } from "#formats";
import {
  call,
  errorAnswers,
  errorAnswersIn,
  idempotencyKey,
  ok,
  okOrEvents,
  paid,
  replayed,
  withKey,
} from "./openapi-parts.ts";

/** The native formats are defined by their providers. These schemas have only the fields that this service reads. */

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

const callHeaders = z.object({
  "x-request-id": z.string(),
  "x-xm-cost-usd": z.string().describe("What the request cost; absent on streams").optional(),
  "x-ignored-params": z.string().describe("Hints that the model's upstream does not take").optional(),
});
const storedCallHeaders = callHeaders.extend({ "idempotent-replayed": replayed });
const countHeaders = z.object({
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

const messagesKeys = [{ anthropicKey: [] }, { bearer: [] }];
const geminiKeys = [{ geminiKey: [] }, { geminiQueryKey: [] }, { bearer: [] }];
const modelPath = z.object({ model: z.string().meta({ example: "local/chat" }) });
const geminiErrors = errorAnswersIn(geminiError, paid);
const geminiName = z.looseObject({ name: z.string() });

export const nativePaths = {
  "/v1/messages": call(
    "createMessage",
    "Anthropic's Messages format, for that provider's models",
    messagesRequest,
    {
      ...okOrEvents("The message, or its events", message, storedCallHeaders),
      ...errorAnswersIn(messagesError, [...paid, 409]),
    },
    { security: messagesKeys, ...withKey },
  ),
  "/v1/messages/count_tokens": call(
    "countMessageTokens",
    "The tokens of a message; free",
    countTokensRequest,
    {
      ...ok("The count", z.object({ input_tokens: z.int() }), countHeaders),
      ...errorAnswersIn(messagesError, paid),
    },
    { security: messagesKeys },
  ),
  "/v1/responses": call(
    "createResponse",
    "OpenAI's Responses format, for that provider's models; nothing is stored",
    responsesRequest,
    {
      ...okOrEvents("The response, or its events", response, storedCallHeaders),
      ...errorAnswers(...paid, 409),
    },
    withKey,
  ),
  "/v1beta/models/{model}:generateContent": call(
    "generateContent",
    "Google's Gemini format, for every chat model; also under /v1",
    geminiRequest,
    { ...ok("The answer", generated, storedCallHeaders), ...errorAnswersIn(geminiError, [...paid, 409]) },
    { security: geminiKeys, params: { path: modelPath, header: idempotencyKey } },
  ),
  "/v1beta/models/{model}:streamGenerateContent": call(
    "streamGenerateContent",
    "The same as a stream: server-sent events with `alt=sse`, else one JSON array",
    geminiRequest,
    { ...okOrEvents("Pieces of the answer", z.array(generated), callHeaders), ...geminiErrors },
    {
      security: geminiKeys,
      params: { path: modelPath, query: z.object({ alt: z.enum(["sse", "json"]).optional() }) },
    },
  ),
  "/v1beta/models/{model}:countTokens": call(
    "countTokens",
    "The tokens of a request; free",
    z.looseObject({ contents: z.array(z.looseObject({})).optional() }),
    { ...ok("The count", z.object({ totalTokens: z.int() }), countHeaders), ...geminiErrors },
    { security: geminiKeys, params: { path: modelPath } },
  ),
  "/v1beta/models": {
    get: {
      operationId: "listGeminiModels",
      summary: "The chat models as Google's API lists them",
      security: [],
      requestParams: { query: z.object({ pageSize: z.int().optional(), pageToken: z.string().optional() }) },
      responses: {
        ...ok("A page of models", z.looseObject({ models: z.array(geminiName) })),
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
      responses: { ...ok("The model", geminiName), ...errorAnswersIn(geminiError, [404]) },
    },
  },
};
