import { type Request, type RequestHandler, Router } from "express";
import { z } from "zod";
import type { Model } from "#catalog";
import { invalidValue } from "#errors";
import type { Uses } from "#platform/uses";
import { findModel, isListed, isServedIn, type ModelDeps, noSuchModel, servedAt } from "../admission/model.ts";
import { answerParts } from "../http/answer.ts";
import { methodNotAllowed, modelListFormat, noSuchRoute } from "../http/errors.ts";
import { localsOf } from "../http/headers.ts";
import { parse, wholeNumber } from "../http/input.ts";
import { refTo } from "../http/openapi/formats/index.ts";
import { requestId } from "../http/openapi/headers.ts";
import { type Group, operation, pathId } from "../http/openapi/operation.ts";
import { type PageFile, pageFile, sendPageFile } from "../http/page-files.ts";
import {
  chatModel,
  geminiModel,
  lifecycleOf,
  messagesModel,
  nameFor,
  sentModel,
  sentModelList,
} from "./model-views.ts";

interface ModelListDeps extends Uses<"clock">, ModelDeps {}

/** The models in one API's format. Throws 400 for a bad parameter, 404 for an unknown model. */
interface ModelList {
  /** Returns JSON text, or a document if it is the same for everybody. */
  list(query: unknown): string | PageFile;
  get(id: string): object;
}

function listedOr404(
  deps: ModelDeps,
  id: string,
  model: Model | undefined,
  isServed?: (model: Model) => boolean,
): Model {
  if (!model || !isListed(deps.registry, model)) throw noSuchModel(deps, id, isServed);
  return model;
}

/** `GET /v1/models` and `GET /v1/models/{id}`, in the format that the headers indicate. No key is needed. */
export function modelRoutes(deps: ModelListDeps): Router {
  const lists = { chat: chatModels(deps), messages: messagesModels(deps), gemini: geminiModels(deps) };
  return routes((req) => lists[modelListFormat(req)], [formatHeaders]);
}

/** `GET /v1beta/models` and `GET /v1beta/models/{model}`, whatever the headers. */
export function geminiModelRoutes(deps: ModelDeps): Router {
  const list = geminiModels(deps);
  return routes(() => list);
}

/** The slash of an id may be raw or %2F. A slash at the end is not part of the id. */
const idOf = (req: Request) => (req.params as unknown as { id: string[] }).id.join("/").replace(/\/$/, "");

/** A POST with a verb is a call in Gemini's format. The known verbs have a route, so this one does not exist. */
const unknownVerb: RequestHandler = (req, res, next) =>
  req.path.lastIndexOf(":") > req.path.lastIndexOf("/") ? noSuchRoute(req, res, next) : next();

function routes(listFor: (req: Request) => ModelList, before: readonly RequestHandler[] = []): Router {
  const router = Router();
  for (const handle of before) router.use(handle);
  router.get("/", async (req, res) => {
    const list = listFor(req).list(req.query);
    if (typeof list === "string") answerParts(res, [list]);
    else await sendPageFile(req, res, list);
  });
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

function chatModels(deps: ModelDeps): ModelList {
  const { catalog, registry } = deps;
  const shown = (model: Model) => chatModel(catalog, model, servedAt(registry, model));
  // Rendered again only if its upstreams have changed, because the list is long and anyone may ask for it.
  const rendered = new Map<Model, { readonly served: string; readonly json: string }>();
  const jsonOf = (model: Model): string => {
    const served = servedAt(registry, model).join();
    const known = rendered.get(model);
    if (known?.served === served) return known.json;
    const json = JSON.stringify(shown(model));
    rendered.set(model, { served, json });
    return json;
  };
  let last: { readonly parts: readonly string[]; readonly file: PageFile } | undefined;
  return {
    list() {
      const parts = catalog.list().flatMap((model) => (isListed(registry, model) ? jsonOf(model) : []));
      if (parts.length !== last?.parts.length || parts.some((part, at) => part !== last?.parts[at]))
        last = { parts, file: pageFile(".json", Buffer.from(`{"object":"list","data":[${parts.join()}]}`)) };
      return last.file;
    },
    get: (id) => shown(listedOr404(deps, id, catalog.find(id))),
  };
}

/** A place in the order of the lists, even if the model at it is no longer listed. */
type Place = Pick<Model, "created" | "id">;

/** Newest first, as in the providers' lists; models of one day are ordered by id. */
const compare = (one: Place, other: Place): number => {
  if (one.created !== other.created) return other.created - one.created;
  return one.id < other.id ? -1 : Number(one.id > other.id);
};

const newestFirst = (models: readonly Model[]): readonly Model[] => models.toSorted(compare);

const comesAfter = (model: Place, place: Place): boolean => compare(model, place) > 0;

const stage = z.enum(["active", "deprecated", "retired"]);
const stages = z.union([stage, z.array(stage).max(3)]).optional();

const messagesModelQuery = z.object({
  limit: wholeNumber(z.int().min(1).max(1000)).optional().describe("Default: 20"),
  after_id: z.string().optional().describe("`last_id` of the previous page"),
  before_id: z.string().optional().describe("`first_id` of the following page; cannot be combined with `after_id`"),
});
/** Unknown parameters are ignored. */
const messagesQuery = messagesModelQuery.extend({
  lifecycle: stages,
  /** The official client sends a list under this name. */
  "lifecycle[]": stages,
});

/** `GET /v1/models` of Anthropic's API: the models that the Messages format serves. */
function messagesModels(deps: ModelListDeps): ModelList {
  const { catalog, registry, clock } = deps;
  const isServed = (model: Model) => isServedIn(deps, "messages", model);
  const models = newestFirst(catalog.list().filter(isServed));
  const find = (id: string) => models.find((model) => model === findModel(catalog, "messages", id));

  /** Accepts a model that is no longer listed, so that a client in the middle of the list can continue. */
  function placeOf(param: "after_id" | "before_id", id: string): number {
    const model = find(id);
    if (!model) throw invalidValue(param, `${param}: there is no model '${id}'.`);
    return models.indexOf(model);
  }

  return {
    list(query) {
      const { limit = 20, after_id, before_id, ...filters } = parse(messagesQuery, query);
      if (after_id !== undefined && before_id !== undefined)
        throw invalidValue("before_id", "before_id: cannot be combined with after_id.");
      const wanted = [filters.lifecycle ?? [], filters["lifecycle[]"] ?? []].flat();
      const start = after_id === undefined ? 0 : placeOf("after_id", after_id) + 1;
      const end = before_id === undefined ? undefined : placeOf("before_id", before_id);
      const now = clock.now();
      const isWanted = (model: Model) => wanted.length === 0 || wanted.includes(lifecycleOf(model, now));
      const available = models.slice(start, end).filter((model) => isListed(registry, model) && isWanted(model));
      const page = before_id === undefined ? available.slice(0, limit) : available.slice(-limit);
      const [first, last] = [page.at(0), page.at(-1)];
      return JSON.stringify({
        data: page.map((model) => messagesModel(model, now)),
        has_more: page.length < available.length,
        first_id: first ? nameFor("anthropic", first) : null,
        last_id: last ? nameFor("anthropic", last) : null,
      });
    },
    get: (id) => messagesModel(listedOr404(deps, id, find(id), isServed), clock.now()),
  };
}

/** The rules of Google's API: a larger page size, of 32 bits, is reduced, and 0 or an empty token mean the default. */
const geminiModelQuery = z.object({
  pageSize: wholeNumber(z.int32().min(0))
    .optional()
    .describe("0 means the default of 50; more than 1000 is treated as 1000"),
  pageToken: z.string().optional().describe("`nextPageToken` of the previous page"),
});

/** Encodes the last model of a page instead of an offset, because the list may change between two requests. */
const tokenOf = ({ created, id }: Place) => Buffer.from(`${created} ${id}`).toString("base64url");

function placeOf(token: string): Place {
  const [, created, id] = /^(\d+) (.+)$/.exec(Buffer.from(token, "base64url").toString()) ?? [];
  const place = id === undefined ? undefined : { created: Number(created), id };
  if (!place || tokenOf(place) !== token) throw invalidValue("pageToken", "pageToken: not a token of this list.");
  return place;
}

/** `models.list` and `models.get` of the Gemini API: every model for text. */
function geminiModels(deps: ModelDeps): ModelList {
  const { catalog, registry } = deps;
  const isServed = (model: Model) => isServedIn(deps, "gemini", model);
  const models = newestFirst(catalog.list().filter(isServed));
  return {
    list(query) {
      const { pageSize, pageToken = "" } = parse(geminiModelQuery, query);
      const listed = models.filter((model) => isListed(registry, model));
      const place = pageToken === "" ? undefined : placeOf(pageToken);
      const remaining = place ? listed.filter((model) => comesAfter(model, place)) : listed;
      const page = remaining.slice(0, Math.min(pageSize || 50, 1000));
      const last = page.length < remaining.length ? page.at(-1) : undefined;
      return JSON.stringify({ models: page.map(geminiModel), ...(last && { nextPageToken: tokenOf(last) }) });
    },
    get(id) {
      const model = findModel(catalog, "gemini", id.replace(/^models\//, ""));
      return geminiModel(listedOr404(deps, id, model && isServed(model) ? model : undefined, isServed));
    },
  };
}

/** The headers of the request choose one. */
const anyModelList = z.union([sentModelList, refTo("MessagesModelList"), refTo("GeminiModelList")]);
const anyModel = z.union([sentModel, refTo("MessagesModel"), refTo("GeminiModel")]);

const formatHeader = z.object({
  "anthropic-version": z
    .string()
    .optional()
    .describe("With any value, the response and its errors are in Anthropic's format"),
  "x-goog-api-key": z
    .string()
    .optional()
    .describe("With any value, the response and its errors are in Google's format; the key is not checked"),
  "x-goog-api-client": z.string().optional().describe("Same effect; sent by Google's clients"),
});

const byHeader = {
  ...requestId,
  "request-id": z.string().optional().describe("The same as `x-request-id`, in Anthropic's format"),
  Vary: z.string().describe("The headers that select the format, and `accept-encoding`"),
};

const description =
  "The request's headers select the format: `anthropic-version` selects Anthropic's, otherwise `x-goog-api-key` or `x-goog-api-client` selects Google's, otherwise it is this service's own.";

export const modelGroup: Group = {
  name: "Models",
  description: "The models that can be called now, with their prices; no key is required",
  operations: {
    "GET /v1/models": operation("listModels", "List the models that can be called now", {
      description: `${description} The service's own list is complete and ignores the parameters for pages; the others are paged.`,
      security: [],
      params: { header: formatHeader, query: messagesModelQuery.extend(geminiModelQuery.shape) },
      ok: ["`ModelList`, `MessagesModelList` or `GeminiModelList`", anyModelList, z.object(byHeader)],
      errorFormat: "byHeader",
      errors: [400],
    }),
    "GET /v1/models/{id}": operation("getModel", "Get one model; the slash is part of the id", {
      description,
      security: [],
      params: { ...pathId("local/chat"), header: formatHeader },
      ok: ["`Model`, `MessagesModel` or `GeminiModel`", anyModel, z.object(byHeader)],
      errorFormat: "byHeader",
      errors: [404],
    }),
  },
};

/** The same operations in the group of Gemini's format. */
export const geminiModelOperations = {
  "GET /v1beta/models": operation("listGeminiModels", "List the chat models in the format of Google's API", {
    security: [],
    errorFormat: "gemini",
    params: { query: geminiModelQuery },
    ok: ["A page of models", refTo("GeminiModelList")],
    errors: [400],
  }),
  "GET /v1beta/models/{model}": operation("getGeminiModel", "Get one chat model in the format of Google's API", {
    security: [],
    errorFormat: "gemini",
    params: { path: z.object({ model: z.string().meta({ example: "local/chat" }) }) },
    ok: ["The model", refTo("GeminiModel")],
    errors: [404],
  }),
};
