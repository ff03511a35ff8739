import type { Request, RequestHandler } from "express";
import type { Model } from "#catalog";
import { geminiCodec, geminiCountCodec, geminiEmbedCodec } from "#formats";
import { methodNotAllowed } from "../http/errors.ts";
import { type CallDeps, paidRoute } from "../paid-call.ts";
import type { PaidRoute } from "../paid-route.ts";

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
      return { ...common, job: "chat", codec: geminiCodec(model, false, false) };
    case "streamGenerateContent":
      return {
        ...common,
        job: "chat",
        codec: geminiCodec(model, true, isSse),
        ...(!isSse && { framing: "array" as const }),
      };
    case "countTokens":
      return { ...common, job: "count", codec: geminiCountCodec(model), isFree: true };
    case "embedContent":
    case "batchEmbedContents":
      return { ...common, job: "embeddings", codec: geminiEmbedCodec(model, verb), serves: isForEmbeddings };
    default:
      return undefined;
  }
}

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
