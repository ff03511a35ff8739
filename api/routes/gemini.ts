import type { Request, RequestHandler } from "express";
import { geminiCodec, geminiCountCodec } from "#formats";
import { type CallDeps, paidRoute } from "../paid-call.ts";
import type { PaidRoute } from "../paid-route.ts";

/** What the path of a call names: `models/gemini-2.5-flash:generateContent`. */
interface Named {
  readonly model: string;
  readonly verb: string;
}

/** The slash of an id may come raw or as %2F; some clients leave `models/` out. */
function named(req: Request): Named | undefined {
  const path = (req.params as unknown as { path: string[] }).path.join("/");
  const colon = path.lastIndexOf(":");
  if (colon < 1) return undefined;
  return { model: path.slice(0, colon).replace(/^models\//, ""), verb: path.slice(colon + 1) };
}

/** The model is in the path, and so is what is asked of it. */
function routeOf({ model, verb }: Named, isSse: boolean): PaidRoute | undefined {
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
    default:
      return undefined;
  }
}

/** Google's Gemini format, at `/v1beta/*path` and `/v1/*path`. What is no call of it is left to what follows. */
export const geminiRoutes =
  (deps: CallDeps): RequestHandler =>
  (req, res, next) => {
    const call = named(req);
    const route = call && routeOf(call, req.query["alt"] === "sse");
    return route ? paidRoute(deps, route)(req, res, next) : next();
  };
