import { z } from "zod";
import { createDocument } from "zod-openapi";
import { chatRequest, embeddingsRequest, imageRequest, mediaRequest } from "#formats";
import { nativePaths } from "./openapi-native.ts";
import { call, errorAnswers, idempotencyKey, json, ok, okOrEvents, paid, replayed, withKey } from "./openapi-parts.ts";
import { paymentAnswer, paymentResponse, paymentSignature } from "./openapi-payments.ts";
import { modelList, modelObject } from "./routes/models/chat.ts";
import { completion, deletedUpload, newUpload, uploadList, uploadObject } from "./routes/upload-object.ts";

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

const unixSeconds = z.int().describe("unix seconds");

const imageResponse = z
  .object({
    created: unixSeconds,
    expires_at: z.int().describe("unix seconds; when the files are deleted, 24 hours after creation"),
    data: z.array(
      z.looseObject({
        url: z.url().optional(),
        b64_json: z.string().optional(),
        revised_prompt: z.string().optional(),
        expires_at: unixSeconds,
      }),
    ),
  })
  .meta({ id: "ImageResponse" });

const mediaResponse = z
  .object({
    id: z.string(),
    object: z.literal("media.generation"),
    created: unixSeconds,
    model: z.string(),
    expires_at: unixSeconds,
    output: z.looseObject({}).describe("What the model says beside its files, such as a transcript"),
    files: z.array(z.looseObject({ url: z.url(), content_type: z.string(), bytes: z.int(), expires_at: unixSeconds })),
  })
  .meta({ id: "MediaResponse" });

const callHeaders = z.object({
  "x-request-id": z.string(),
  "x-xm-cost-usd": z.string().optional().describe("What the request cost; absent on streams"),
});

const storedCallHeaders = callHeaders.extend({ "idempotent-replayed": replayed });
const generation = (operationId: string, summary: string, request: z.ZodType, response: z.ZodType) =>
  call(
    operationId,
    summary,
    request,
    {
      ...ok("The answer", response, storedCallHeaders.extend({ "PAYMENT-RESPONSE": paymentResponse })),
      ...errorAnswers(...paid, 409, 410),
      ...paymentAnswer,
    },
    {
      security: [{ bearer: [] }, {}],
      params: { header: idempotencyKey.extend({ "PAYMENT-SIGNATURE": paymentSignature }) },
    },
  );
const uploadId = z.object({ id: z.string().meta({ example: "upl_..." }) });
const binary = z.string().meta({ format: "binary" });

/** OpenAPI 3.1 of the public interface, generated from the schemas that validate requests. */
export const openApiDocument = (serverUrl: string) =>
  createDocument({
    openapi: "3.1.0",
    info: {
      title: "Inference service",
      version: "1.0.0",
      description:
        "Text, image, video, audio and embedding models behind one address and one key, prepaid by balance. Images and media also without a key, paid one by one by x402, where the service takes that.",
    },
    servers: [{ url: serverUrl }],
    security: [{ bearer: [] }],
    components: {
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer" },
        anthropicKey: { type: "apiKey", in: "header", name: "x-api-key" },
        geminiKey: { type: "apiKey", in: "header", name: "x-goog-api-key" },
        geminiQueryKey: { type: "apiKey", in: "query", name: "key" },
      },
    },
    paths: {
      "/v1/chat/completions": call(
        "createChatCompletion",
        "Chat, as JSON or as a stream",
        chatRequest,
        {
          ...okOrEvents(
            "The answer; with `stream: true` server-sent events whose last chunk carries usage",
            chatResponse,
            storedCallHeaders,
          ),
          ...errorAnswers(...paid, 409),
        },
        withKey,
      ),
      ...nativePaths,
      "/v1/embeddings": call(
        "createEmbeddings",
        "Embeddings of a text, or of up to 256 texts",
        embeddingsRequest,
        {
          ...ok("The embeddings", embeddingsResponse, storedCallHeaders),
          ...errorAnswers(...paid, 409),
        },
        withKey,
      ),
      "/v1/images/generations": generation(
        "createImage",
        "Images from a prompt, priced per image",
        imageRequest,
        imageResponse,
      ),
      "/v1/media/generations": generation(
        "createMedia",
        "Video, audio and other media, priced per unit of output",
        mediaRequest,
        mediaResponse,
      ),
      "/v1/uploads": {
        post: {
          operationId: "createUpload",
          summary: "Upload a file as a raw body, as a form, or in parts (JSON)",
          requestParams: { header: idempotencyKey },
          requestBody: {
            required: true,
            content: {
              "application/octet-stream": { schema: binary },
              "multipart/form-data": { schema: z.object({ file: binary }) },
              ...json(newUpload),
            },
          },
          responses: {
            ...ok("The upload", uploadObject, storedCallHeaders),
            ...errorAnswers(400, 401, 402, 403, 408, 409, 411, 413, 415, 429, 500, 503),
          },
        },
        get: {
          operationId: "listUploads",
          summary: "The account's uploads of the last 24 hours, newest first",
          requestParams: {
            query: z.object({ limit: z.int().min(1).max(200).optional(), after: z.string().optional() }),
          },
          responses: {
            ...ok("The uploads", uploadList),
            ...errorAnswers(400, 401, 500, 503),
          },
        },
      },
      "/v1/uploads/{id}": {
        get: {
          operationId: "getUpload",
          summary: "One upload",
          requestParams: { path: uploadId },
          responses: {
            ...ok("The upload", uploadObject),
            ...errorAnswers(401, 404, 410, 500, 503),
          },
        },
        delete: {
          operationId: "deleteUpload",
          summary: "Delete an upload at once",
          requestParams: { path: uploadId },
          responses: {
            ...ok("It is gone", deletedUpload),
            ...errorAnswers(401, 404, 410, 500, 503),
          },
        },
      },
      "/v1/uploads/{id}/complete": {
        post: {
          operationId: "completeUpload",
          summary: "Complete an upload in parts: the `complete_url` of a pending one",
          requestParams: { path: uploadId },
          requestBody: { required: false, content: json(completion) },
          responses: {
            ...ok("The upload", uploadObject, callHeaders),
            ...errorAnswers(400, 401, 404, 408, 410, 413, 415, 429, 500, 503),
          },
        },
      },
      "/media/{id}": {
        get: {
          operationId: "getFile",
          summary: "A generated file; takes Range",
          security: [],
          requestParams: { path: z.object({ id: z.string().meta({ example: "file_..." }) }) },
          responses: {
            "200": { description: "The file", content: { "*/*": { schema: binary } } },
            "206": { description: "The part that was asked for", content: { "*/*": { schema: binary } } },
            "304": { description: "It is the one that the caller has" },
            ...errorAnswers(404, 410, 503),
            "416": { description: "The file ends before that part" },
          },
        },
      },
      "/v1/models": {
        get: {
          operationId: "listModels",
          summary: "Every model that can be called now",
          security: [],
          responses: { ...ok("The models with their prices", modelList) },
        },
      },
      "/v1/models/{id}": {
        get: {
          operationId: "getModel",
          summary: "One model; the slash is part of the id",
          security: [],
          requestParams: { path: z.object({ id: z.string().meta({ example: "local/chat" }) }) },
          responses: { ...ok("The model", modelObject), ...errorAnswers(404) },
        },
      },
    },
  });
