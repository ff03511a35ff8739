import { z } from "zod";
import { createDocument } from "zod-openapi";
import { errorKinds } from "#errors";
import { chatRequest, embeddingsRequest } from "#formats";
import { modelList, modelObject } from "./routes/models.ts";

/** Specification, part 2, "Error body". */
const errorBody = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.enum([...new Set(Object.values(errorKinds).map(({ type }) => type))]),
      code: z.enum(Object.keys(errorKinds)).nullable(),
      param: z.string().nullable().describe("The field at fault"),
    }),
    request_id: z.string(),
  })
  .meta({ id: "Error" });

const usage = z.looseObject({
  prompt_tokens: z.int(),
  completion_tokens: z.int().optional(),
  total_tokens: z.int(),
});

const chatResponse = z
  .looseObject({
    id: z.string(),
    object: z.literal("chat.completion"),
    model: z.string(),
    choices: z.array(
      z.looseObject({
        index: z.int(),
        message: chatRequest.shape.messages.element,
        finish_reason: z.string().nullable(),
      }),
    ),
    usage,
  })
  .meta({ id: "ChatResponse" });

const embeddingsResponse = z
  .object({
    object: z.literal("list"),
    model: z.string(),
    data: z.array(
      z.object({
        object: z.literal("embedding"),
        index: z.int(),
        embedding: z.union([z.array(z.number()), z.string().describe("base64 of little-endian float32")]),
      }),
    ),
    usage,
  })
  .meta({ id: "EmbeddingsResponse" });

const json = (schema: z.ZodType) => ({ "application/json": { schema } });
const retryAfter = z.int().min(1).max(60).describe("Seconds").optional();

/** All that this status can mean, in the words of the error list. */
const errorAnswers = (...statuses: number[]) =>
  Object.fromEntries(
    statuses.map((status) => {
      const kinds = Object.entries(errorKinds).filter(([, kind]) => kind.status === status);
      const description = kinds.map(([code, { when }]) => `\`${code}\`: ${when}.`).join(" ");
      const waits = status === 429 || status === 503;
      const headers = waits ? { headers: z.object({ "Retry-After": retryAfter }) } : {};
      return [`${status}`, { description, content: json(errorBody), ...headers }];
    }),
  );

const paid = [400, 401, 402, 403, 404, 413, 415, 429, 500, 502, 503, 504];
const requestIdHeader = z.object({
  "x-request-id": z.string(),
  "x-xm-cost-usd": z.string().describe("What the request cost; absent on streams").optional(),
});

/** OpenAPI 3.1 of the public interface, made from the schemas that check the requests. */
export const openApiDocument = (serverUrl: string) =>
  createDocument({
    openapi: "3.1.0",
    info: {
      title: "Inference service",
      version: "1.0.0",
      description: "Text and embedding models behind one address and one key, prepaid by balance.",
    },
    servers: [{ url: serverUrl }],
    security: [{ bearer: [] }],
    components: { securitySchemes: { bearer: { type: "http", scheme: "bearer" } } },
    paths: {
      "/v1/chat/completions": {
        post: {
          operationId: "createChatCompletion",
          summary: "Chat, as JSON or as a stream",
          requestBody: { required: true, content: json(chatRequest) },
          responses: {
            "200": {
              description: "The answer; with `stream: true` server-sent events whose last chunk carries usage",
              headers: requestIdHeader,
              content: { ...json(chatResponse), "text/event-stream": { schema: z.string() } },
            },
            ...errorAnswers(...paid),
          },
        },
      },
      "/v1/embeddings": {
        post: {
          operationId: "createEmbeddings",
          summary: "Embeddings of a text, or of up to 256 texts",
          requestBody: { required: true, content: json(embeddingsRequest) },
          responses: {
            "200": { description: "The embeddings", headers: requestIdHeader, content: json(embeddingsResponse) },
            ...errorAnswers(...paid),
          },
        },
      },
      "/v1/models": {
        get: {
          operationId: "listModels",
          summary: "Every model that can be called now",
          security: [],
          responses: { "200": { description: "The models with their prices", content: json(modelList) } },
        },
      },
      "/v1/models/{id}": {
        get: {
          operationId: "getModel",
          summary: "One model; the slash is part of the id",
          security: [],
          requestParams: { path: z.object({ id: z.string().meta({ example: "local/chat" }) }) },
          responses: { "200": { description: "The model", content: json(modelObject) }, ...errorAnswers(404) },
        },
      },
    },
  });
