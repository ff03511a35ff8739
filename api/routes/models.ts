import { type Request, type RequestHandler, Router } from "express";
import { methodNotAllowed, modelListFormat, noSuchRoute } from "../http/errors.ts";
import { localsOf } from "../http/headers.ts";
import { chatModels } from "./models/chat.ts";
import { geminiModels } from "./models/gemini.ts";
import { messagesModels } from "./models/messages.ts";
import type { ModelDeps, ModelList } from "./models/model-list.ts";

/** The slash of an id may be raw or %2F. */
const idOf = (req: Request) => (req.params as unknown as { id: string[] }).id.join("/");

/** A POST with a verb is a call in Gemini's format. The known verbs have a route, so this one does not exist. */
const unknownVerb: RequestHandler = (req, res, next) =>
  /:[^/]*$/.test(req.path) ? noSuchRoute(req, res, next) : next();

function routes(listFor: (req: Request) => ModelList, before: readonly RequestHandler[] = []): Router {
  const router = Router();
  for (const handle of before) router.use(handle);
  router.get("/", (req, res) => void res.json(listFor(req).list(req.query)));
  router.get("/*id", (req, res) => void res.json(listFor(req).get(idOf(req))));
  router.post("/*id", unknownVerb);
  router.all(["/", "/*id"], methodNotAllowed("GET", "HEAD"));
  return router;
}

const formatHeaders: RequestHandler = (req, res, next) => {
  res.vary("anthropic-version, x-goog-api-key, x-goog-api-client");
  if (modelListFormat(req) === "messages") res.setHeader("request-id", localsOf(res).requestId);
  next();
};

/** `GET /v1/models` and `GET /v1/models/{id}`, in the format that the headers indicate. No key is needed. */
export function modelRoutes(deps: ModelDeps): Router {
  const lists = { chat: chatModels(deps), messages: messagesModels(deps), gemini: geminiModels(deps) };
  return routes((req) => lists[modelListFormat(req)], [formatHeaders]);
}

/** `GET /v1beta/models` and `GET /v1beta/models/{model}`, whatever the headers. */
export function geminiModelRoutes(deps: ModelDeps): Router {
  const list = geminiModels(deps);
  return routes(() => list);
}
