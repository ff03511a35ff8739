import { z } from "zod";
import { createDocument, type ZodOpenApiOperationObject } from "zod-openapi";
import { errorKinds } from "#errors";
import {
  batchEmbedContentsRequest,
  chatRequest,
  completionsRequest,
  countTokensRequest,
  embedContentRequest,
  embeddingsRequest,
  geminiRequest,
  imageRequest,
  mediaRequest,
  messagesRequest,
  responsesRequest,
  speechRequest,
  transcriptionRequest,
} from "#formats";
import * as answers from "./openapi-schemas.ts";
import { shownTypes } from "./routes/files.ts";
import { modelList, modelObject } from "./routes/models.ts";
import { completion, deletedUpload, newUpload, uploadList, uploadObject } from "./routes/upload-object.ts";

interface Details {
  readonly security?: Record<string, string[]>[];
  readonly params?: { readonly path?: z.ZodObject; readonly query?: z.ZodObject; readonly header?: z.ZodObject };
  /** A required JSON body; `requestBody` describes any other. */
  readonly body?: z.ZodType;
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  /** The 200 response in JSON, or in JSON and as events. */
  readonly ok?: Ok;
  readonly okOrEvents?: Ok;
  readonly errors?: readonly number[];
  readonly errorBody?: z.ZodType;
  /** Responses that the other fields do not describe. */
  readonly responses?: ZodOpenApiOperationObject["responses"];
}
type Content = Record<string, { readonly schema: z.ZodType }>;
type Ok = readonly [description: string, schema: z.ZodType, headers?: z.ZodObject];

const json = (schema: z.ZodType): Content => ({ "application/json": { schema } });
const events: Content = { "text/event-stream": { schema: z.string() } };
const retryAfter = z.object({ "Retry-After": z.int().min(1).max(60).optional().describe("Seconds") });

function okResponse([description, schema, headers]: Ok, more: Content = {}) {
  return { "200": { description, ...(headers && { headers }), content: { ...json(schema), ...more } } };
}

/** The meanings of the error codes of a status. */
const meaningsOf = (status: number) =>
  Object.entries(errorKinds)
    .filter(([, kind]) => kind.status === status)
    .map(([code, { when }]) => `\`${code}\`: ${when}.`)
    .join(" ");

function operation(operationId: string, summary: string, details: Details): ZodOpenApiOperationObject {
  const { security, params, body, ok, okOrEvents, errors = [], errorBody = answers.errorBody, responses } = details;
  const requestBody = details.requestBody ?? (body && { required: true, content: json(body) });
  const error = (status: number) => ({
    description: meaningsOf(status),
    content: json(errorBody),
    ...((status === 429 || status === 503) && { headers: retryAfter }),
  });
  return {
    operationId,
    summary,
    ...(security && { security }),
    ...(params && { requestParams: params }),
    ...(requestBody && { requestBody }),
    responses: {
      ...(ok && okResponse(ok)),
      ...(okOrEvents && okResponse(okOrEvents, events)),
      ...Object.fromEntries(errors.map((status) => [status, error(status)])),
      ...responses,
    },
  };
}

/** The statuses of the errors of every paid route. */
const paid = [400, 401, 402, 403, 404, 408, 413, 415, 429, 500, 502, 503, 504];
const { callHeaders, idempotencyKey, nativeHeaders } = answers;
const storedCallHeaders = callHeaders.extend({ "idempotent-replayed": answers.replayed });
const storedNativeHeaders = nativeHeaders.extend({ "idempotent-replayed": answers.replayed });
const embedHeaders = storedCallHeaders.extend({ "x-ignored-params": answers.ignoredParams });
const payableHeaders = storedCallHeaders.extend({ "PAYMENT-RESPONSE": answers.paymentResponse });
const imageHeaders = payableHeaders.extend({ "x-ignored-params": answers.ignoredParams });

/** Calls whose answers are stored for an `Idempotency-Key`. */
const storing = { params: { header: idempotencyKey }, errors: [...paid, 409] };
const messages = {
  security: [{ anthropicKey: [] }, { bearer: [] }],
  errors: paid,
  errorBody: answers.messagesError,
};
const gemini = {
  security: [{ geminiKey: [] }, { geminiQueryKey: [] }, { bearer: [] }],
  errors: paid,
  errorBody: answers.geminiError,
};
const payable = {
  security: [{ bearer: [] }, {}],
  params: { header: idempotencyKey.extend({ "PAYMENT-SIGNATURE": answers.paymentSignature }) },
  errors: [...paid, 409, 410],
  responses: {
    "402": {
      description: `Without a key: what to pay, or why the payment was not taken. ${meaningsOf(402)}`,
      headers: answers.paymentHeaders,
      content: json(z.union([answers.paymentRequired, answers.errorBody])),
    },
  },
};

const pathId = (example: string) => ({ path: z.object({ id: z.string().meta({ example }) }) });
const ofResponse = pathId("resp_...");
const ofUpload = pathId("upl_...");
const modelPath = z.object({ model: z.string().meta({ example: "local/chat" }) });
const embeddingsModelPath = z.object({ model: z.string().meta({ example: "local/embeddings" }) });
const binary = z.string().meta({ format: "binary" });
/** Generators of clients drop an answer of any type, so each is named. A file of another type is read as the first. */
const file: Content = Object.fromEntries(
  ["application/octet-stream", ...shownTypes].map((type) => [type, { schema: binary }]),
);

const recordingForm = {
  required: true,
  content: { "multipart/form-data": { schema: transcriptionRequest.extend({ file: binary.describe("Up to 25 MB") }) } },
};
const transcriptAnswer = {
  "200": {
    description: "The transcript, in the requested format",
    headers: storedCallHeaders,
    content: { ...json(answers.transcript), "text/plain": { schema: z.string() } },
  },
};

const operations = {
  "POST /v1/chat/completions": operation("createChatCompletion", "Chat, as JSON or as a stream", {
    ...storing,
    body: chatRequest,
    okOrEvents: [
      "The answer; with `stream: true` server-sent events whose last chunk carries usage",
      answers.chatResponse,
      storedCallHeaders,
    ],
  }),
  "POST /v1/completions": operation(
    "createCompletion",
    "OpenAI's legacy completions, by every chat model: the prompt becomes the message of a user",
    {
      ...storing,
      body: completionsRequest,
      okOrEvents: [
        "The text; with `stream: true` server-sent events whose last one carries usage",
        answers.completion,
        storedCallHeaders,
      ],
    },
  ),
  "POST /v1/messages": operation(
    "createMessage",
    "Anthropic's Messages format, for that provider's models unless the operator opens it to all",
    {
      ...messages,
      ...storing,
      body: messagesRequest,
      okOrEvents: ["The message, or its events", answers.message, storedNativeHeaders],
    },
  ),
  "POST /v1/messages/count_tokens": operation("countMessageTokens", "The tokens of a message; free", {
    ...messages,
    body: countTokensRequest,
    ok: ["The count", z.object({ input_tokens: z.int() }), answers.countHeaders],
  }),
  "POST /v1/responses": operation(
    "createResponse",
    "OpenAI's Responses format, for that provider's models unless the operator opens it to all; stored for 24 hours unless `store` is false",
    {
      ...storing,
      body: responsesRequest,
      okOrEvents: ["The response, or its events", answers.response, storedNativeHeaders],
    },
  ),
  "POST /v1/responses/input_tokens": operation("countResponseTokens", "The input tokens of a response; free", {
    errors: paid,
    body: responsesRequest,
    ok: [
      "The count",
      z.object({ object: z.literal("response.input_tokens"), input_tokens: z.int() }),
      answers.countHeaders,
    ],
  }),
  "GET /v1/responses/{id}": operation("getResponse", "A stored response of the account", {
    params: ofResponse,
    ok: ["The response", answers.response],
    errors: [400, 401, 404, 500, 503],
  }),
  "DELETE /v1/responses/{id}": operation("deleteResponse", "Delete a stored response at once", {
    params: ofResponse,
    ok: ["It is gone", answers.deletedResponse],
    errors: [401, 404, 500, 503],
  }),
  "GET /v1/responses/{id}/input_items": operation(
    "listInputItems",
    "The input of a stored response, with all that it referred to",
    {
      params: {
        ...ofResponse,
        query: z.object({
          limit: z.int().min(1).max(100).optional(),
          after: z.string().min(1).max(200).optional().describe("`last_id` of the page before"),
          order: z.enum(["asc", "desc"]).optional().describe("The default is desc"),
        }),
      },
      ok: ["A page of items", answers.inputItems],
      errors: [400, 401, 404, 500, 503],
    },
  ),
  "POST /v1beta/models/{model}:generateContent": operation(
    "generateContent",
    "Google's Gemini format, for every chat model; also under /v1",
    {
      ...gemini,
      params: { path: modelPath, header: idempotencyKey },
      body: geminiRequest,
      ok: ["The answer", answers.generated, storedNativeHeaders],
      errors: [...paid, 409],
    },
  ),
  "POST /v1beta/models/{model}:streamGenerateContent": operation(
    "streamGenerateContent",
    "The same as a stream: server-sent events with `alt=sse`, else one JSON array",
    {
      ...gemini,
      params: { path: modelPath, query: z.object({ alt: z.enum(["sse", "json"]).optional() }) },
      body: geminiRequest,
      okOrEvents: ["Pieces of the answer", z.array(answers.generated), nativeHeaders],
    },
  ),
  "POST /v1beta/models/{model}:countTokens": operation("countTokens", "The tokens of a request; free", {
    ...gemini,
    params: { path: modelPath },
    body: z.union([geminiRequest, z.looseObject({ generateContentRequest: geminiRequest })]),
    ok: ["The count", z.object({ totalTokens: z.int() }), answers.countHeaders],
  }),
  "POST /v1beta/models/{model}:embedContent": operation(
    "embedContent",
    "The embedding of a content in Google's format, by every embeddings model; also under /v1",
    {
      ...gemini,
      params: { path: embeddingsModelPath, header: idempotencyKey },
      body: embedContentRequest,
      ok: ["The embedding", answers.embedded, embedHeaders],
      errors: [...paid, 409],
    },
  ),
  "POST /v1beta/models/{model}:batchEmbedContents": operation(
    "batchEmbedContents",
    "The embeddings of up to 256 contents; also under /v1",
    {
      ...gemini,
      params: { path: embeddingsModelPath, header: idempotencyKey },
      body: batchEmbedContentsRequest,
      ok: ["The embeddings, in the order of the requests", answers.batchEmbedded, embedHeaders],
      errors: [...paid, 409],
    },
  ),
  "GET /v1beta/models": operation("listGeminiModels", "The chat models as Google's API lists them", {
    ...gemini,
    security: [],
    params: {
      query: z.object({
        pageSize: z.int32().min(0).optional().describe("0: the default, 50; more than 1000 is 1000"),
        pageToken: z.string().optional().describe("The `nextPageToken` of the page before"),
      }),
    },
    ok: ["A page of models", z.looseObject({ models: z.array(answers.geminiModel) })],
    errors: [400],
  }),
  "GET /v1beta/models/{model}": operation("getGeminiModel", "One of them", {
    ...gemini,
    security: [],
    params: { path: modelPath },
    ok: ["The model", answers.geminiModel],
    errors: [404],
  }),
  "POST /v1/embeddings": operation("createEmbeddings", "Embeddings of a text, or of up to 256 texts", {
    ...storing,
    body: embeddingsRequest,
    ok: ["The embeddings", answers.embeddingsResponse, storedCallHeaders],
  }),
  "POST /v1/images/generations": operation("createImage", "Images from a prompt, priced per image", {
    ...payable,
    body: imageRequest,
    ok: ["The answer", answers.imageResponse, imageHeaders],
  }),
  "POST /v1/media/generations": operation("createMedia", "Video, audio and other media, priced per unit of output", {
    ...payable,
    body: mediaRequest,
    ok: ["The answer", answers.mediaResponse, payableHeaders],
  }),
  "POST /v1/audio/speech": operation("createSpeech", "Speech from a text, priced per character", {
    ...storing,
    body: speechRequest,
    responses: {
      "200": {
        description:
          "The audio while it is generated, or, for `stream_format: sse`, the events `speech.audio.delta` and `speech.audio.done`. Under an `Idempotency-Key` the whole file",
        headers: storedCallHeaders,
        content: { ...file, ...events },
      },
    },
  }),
  "POST /v1/audio/transcriptions": operation("createTranscription", "The text of a recording, priced per minute", {
    ...storing,
    requestBody: recordingForm,
    responses: transcriptAnswer,
  }),
  "POST /v1/audio/translations": operation("createTranslation", "The same in English, of the models that translate", {
    ...storing,
    requestBody: recordingForm,
    responses: transcriptAnswer,
  }),
  "POST /v1/uploads": operation("createUpload", "Upload a file as a raw body, as a form, or in parts (JSON)", {
    params: { header: idempotencyKey },
    requestBody: {
      required: true,
      content: {
        "application/octet-stream": { schema: binary.min(1) },
        "multipart/form-data": { schema: z.object({ file: binary }) },
        ...json(newUpload),
      },
    },
    ok: ["The upload", uploadObject, storedCallHeaders],
    errors: [400, 401, 402, 403, 408, 409, 411, 413, 415, 429, 500, 503],
  }),
  "GET /v1/uploads": operation("listUploads", "The account's uploads of the last 24 hours, newest first", {
    params: {
      query: z.object({
        limit: z.int().min(1).max(200).optional(),
        after: z.string().min(1).max(200).optional().describe("`next` of the page before"),
      }),
    },
    ok: ["The uploads", uploadList],
    errors: [400, 401, 500, 503],
  }),
  "GET /v1/uploads/{id}": operation("getUpload", "One upload", {
    params: ofUpload,
    ok: ["The upload", uploadObject],
    errors: [401, 404, 410, 500, 503],
  }),
  "DELETE /v1/uploads/{id}": operation("deleteUpload", "Delete an upload at once", {
    params: ofUpload,
    ok: ["It is gone", deletedUpload],
    errors: [401, 404, 410, 500, 503],
  }),
  "POST /v1/uploads/{id}/complete": operation(
    "completeUpload",
    "Complete an upload in parts: the `complete_url` of a pending one",
    {
      params: ofUpload,
      requestBody: { required: false, content: json(completion) },
      ok: ["The upload", uploadObject, callHeaders],
      errors: [400, 401, 404, 408, 410, 413, 415, 429, 500, 503],
    },
  ),
  "GET /media/{id}": operation("getFile", "A generated file; takes Range", {
    security: [],
    params: { ...pathId("file_..."), header: answers.fileConditions },
    errors: [404, 410, 500, 503],
    responses: {
      "200": { description: "The file", headers: answers.fileHeaders, content: file },
      "206": { description: "The part that was asked for", headers: answers.partHeaders, content: file },
      "304": { description: "It is the one that the caller has", headers: answers.fileHeaders.pick({ ETag: true }) },
      "416": {
        description: "The file ends before that part",
        headers: answers.partHeaders.pick({ "Content-Range": true }),
      },
    },
  }),
  "GET /v1/models": operation("listModels", "Every model that can be called now", {
    security: [],
    ok: ["The models with their prices", modelList],
  }),
  "GET /v1/models/{id}": operation("getModel", "One model; the slash is part of the id", {
    security: [],
    params: pathId("local/chat"),
    ok: ["The model", modelObject],
    errors: [404],
  }),
};

function groupByPath() {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  for (const [name, described] of Object.entries(operations)) {
    const [method = "", path = ""] = name.split(" ");
    paths[path] = { ...paths[path], [method.toLowerCase()]: described };
  }
  return paths;
}

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
    paths: groupByPath(),
  });
