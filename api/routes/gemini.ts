import type { Request, RequestHandler } from "express";
import { z } from "zod";
import type { Model } from "#catalog";
import {
  batchEmbedContentsRequest,
  embedContentRequest,
  geminiCodec,
  geminiCountCodec,
  geminiEmbedCodec,
  geminiRequest,
} from "#formats";
import { methodNotAllowed } from "../http/errors.ts";
import { refTo } from "../http/openapi/formats/index.ts";
import { countHeaders, storedRoutedHeaders, streamHeaders } from "../http/openapi/headers.ts";
import { type CallDeps, paidRoute } from "../paid-call.ts";
import type { PaidRoute } from "../paid-route.ts";
import { geminiModelOperations } from "./models.ts";
import { callOperation } from "./paid-operation.ts";

/** A path such as `models/gemini-2.5-flash:generateContent`. */
interface GeminiPath {
  readonly model: string;
  readonly verb: string;
}

/** The slash of an id may be raw or %2F; some clients omit `models/`, or add a slash to the id or to the path. */
function parsePath(req: Request): GeminiPath | undefined {
  const path = (req.params as unknown as { path: string[] }).path.join("/").replace(/\/$/, "");
  const colon = path.lastIndexOf(":");
  if (colon < 1) return undefined;
  const model = path
    .slice(0, colon)
    .replace(/^models\//, "")
    .replace(/\/$/, "");
  return { model, verb: path.slice(colon + 1) };
}

const isForEmbeddings = ({ type }: Model) => type === "embeddings";

function routeOf({ model, verb }: GeminiPath, isSse: boolean): PaidRoute | undefined {
  const endpoint = `/v1beta/models:${verb}`;
  const common = { endpoint, model, format: "gemini" } as const;
  switch (verb) {
    case "generateContent":
      return { ...common, job: "chat", codec: geminiCodec(model, false, false), cacheable: true };
    case "streamGenerateContent":
      return {
        ...common,
        job: "chat",
        codec: geminiCodec(model, true, isSse),
        cacheable: true,
        ...(!isSse && { framing: "array" as const }),
      };
    case "countTokens":
      return { ...common, job: "count", codec: geminiCountCodec(model), isFree: true };
    case "embedContent":
    case "batchEmbedContents":
      return {
        ...common,
        job: "embeddings",
        codec: geminiEmbedCodec(model, verb),
        serves: isForEmbeddings,
        cacheable: true,
      };
    default:
      return undefined;
  }
}

/** The route of a call's endpoint, without its model. */
export const geminiRouteAt = (endpoint: string): PaidRoute | undefined =>
  routeOf({ model: "", verb: endpoint.slice(endpoint.lastIndexOf(":") + 1) }, false);

const onlyPost = methodNotAllowed("POST");

/** Google's Gemini format, at `/v1beta/*path` and `/v1/*path`. Other paths are passed to the next handler. */
export const geminiRoutes =
  (deps: CallDeps): RequestHandler =>
  (req, res, next) => {
    const path = parsePath(req);
    const route = path && routeOf(path, (req.query["alt"] ?? req.query["$alt"]) === "sse");
    if (!route) return next();
    return (req.method === "POST" ? paidRoute(deps, route) : onlyPost)(req, res, next);
  };

const native = {
  security: [{ geminiKey: [] }, { geminiQueryKey: [] }, { bearer: [] }],
  errorFormat: "gemini" as const,
};

const modelPath = z.object({ model: z.string().meta({ example: "local/chat" }) });
const embeddingsModelPath = z.object({ model: z.string().meta({ example: "local/embeddings" }) });

export const gemini = {
  name: "Gemini",
  description: "Google's Gemini format, with every model for chat or embeddings; also under `/v1`",
  routes: [],
  operations: {
    "POST /v1beta/models/{model}:generateContent": callOperation(
      { cacheable: true },
      {
        ...native,
        operationId: "generateContent",
        summary: "Generate a response with a chat model",
        params: { path: modelPath },
        body: geminiRequest,
        ok: ["The response", refTo("GeminiAnswer"), storedRoutedHeaders],
      },
    ),
    "POST /v1beta/models/{model}:streamGenerateContent": callOperation(
      { stores: false, cacheable: true },
      {
        ...native,
        operationId: "streamGenerateContent",
        summary: "Generate a response as a stream: server-sent events with `alt=sse`, otherwise one JSON array",
        params: { path: modelPath, query: z.object({ alt: z.enum(["sse", "json"]).optional() }) },
        body: geminiRequest,
        okOrEvents: ["Parts of the response", z.array(refTo("GeminiAnswer")), streamHeaders],
        event: refTo("GeminiAnswer"),
      },
    ),
    "POST /v1beta/models/{model}:countTokens": callOperation(
      { isFree: true },
      {
        ...native,
        operationId: "countTokens",
        summary: "Count the tokens of a request; free",
        params: { path: modelPath },
        body: z.union([geminiRequest, z.looseObject({ generateContentRequest: geminiRequest })]),
        ok: ["The count", z.object({ totalTokens: z.int() }), countHeaders],
      },
    ),
    "POST /v1beta/models/{model}:embedContent": callOperation(
      { cacheable: true },
      {
        ...native,
        operationId: "embedContent",
        summary: "Create the embedding of one content",
        params: { path: embeddingsModelPath },
        body: embedContentRequest,
        ok: ["The embedding", refTo("EmbedContentResponse"), storedRoutedHeaders],
      },
    ),
    "POST /v1beta/models/{model}:batchEmbedContents": callOperation(
      { cacheable: true },
      {
        ...native,
        operationId: "batchEmbedContents",
        summary: "Create the embeddings of up to 256 contents",
        params: { path: embeddingsModelPath },
        body: batchEmbedContentsRequest,
        ok: ["The embeddings, in the order of the requests", refTo("BatchEmbedContentsResponse"), storedRoutedHeaders],
      },
    ),
    ...geminiModelOperations,
  },
};
