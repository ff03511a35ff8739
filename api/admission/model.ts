import type { Catalog, Model, Task } from "#catalog";
import { modelNotFound, modelNotSupported, noCapacity, type ServiceError } from "#errors";
import type { Format, NamedModel, ParsedCall } from "#formats";
import { type CallUpstream, isOwnUpstream, type Pool, type WorkerRegistry } from "#jobs";
import { maxTypos, typosBetween } from "../../shared/typos.ts";
import type { PaidRoute } from "../paid-route.ts";

export interface ModelDeps {
  readonly catalog: Catalog;
  readonly registry: WorkerRegistry;
  /** Every native format accepts every text model (`NATIVE_FORMATS_ANY_MODEL`). */
  readonly nativeFormatsAnyModel: boolean;
}

/** The ids of the model's upstreams of which some worker has an accepted key; all until a worker has been seen. */
export const servedAt = (
  registry: Pick<WorkerRegistry, "known" | "hasKey">,
  { upstreams }: Model,
): readonly string[] => {
  const ids = upstreams.map(({ upstream }) => upstream);
  return [...new Set(ids)].filter((id) => !registry.known() || registry.hasKey(id));
};

/**
 * A model is listed while some worker has a key of one of its upstreams that its provider accepts. All are listed until a
 * worker has been seen.
 */
export const isListed = (registry: WorkerRegistry, model: Model): boolean => servedAt(registry, model).length > 0;

/** Returns true if an operator has given a key for the model, and its provider refuses it: calls get 503, not 404. */
const hasRefusedKey = (registry: WorkerRegistry, { upstreams }: Model): boolean =>
  upstreams.some(({ upstream }) => registry.upstream(upstream) === "key refused");

/** Formats that are limited to the models of one provider and the local ones, which are the provider's test mode. */
const providers: Partial<Record<Format, string>> = { messages: "anthropic", responses: "openai" };

/** Returns true if calls in this format may name the model. */
export function isServedIn(
  { nativeFormatsAnyModel }: Pick<ModelDeps, "nativeFormatsAnyModel">,
  format: Format,
  { ownedBy, type }: Model,
): boolean {
  const provider = nativeFormatsAnyModel ? undefined : providers[format];
  return type === "text" && (provider === undefined || ownedBy === provider || ownedBy === "local");
}

/**
 * Finds a model by its full id or, in a provider's format, by the provider's own name. In Gemini's format only Google's
 * models have such a name.
 */
export function findModel(catalog: Catalog, format: Format | undefined, name: string): Model | undefined {
  const model = catalog.find(name);
  if (model || format === undefined || format === "chat") return model;
  const named = catalog.named(name);
  return format === "gemini" && named?.ownedBy !== "google" ? undefined : named;
}

/** Longer names cannot be typos of a model's name. The limit also bounds the work. */
const maxNameLength = 80;
const maxSimilar = 3;

/** Normalizes a name: no provider, variant, date, capitals or punctuation. */
const plain = (name: string): string =>
  name
    .slice(name.lastIndexOf("/") + 1)
    .split(":", 1)
    .join()
    .replace(/-(latest|20\d\d-?\d\d-?\d\d)$/, "")
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "");

/** The ids of up to three models that a caller may have meant: those whose normalized names are nearest. */
export function similarModels(models: readonly Model[], name: string): readonly string[] {
  if (name.length > maxNameLength) return [];
  const wanted = plain(name);
  if (wanted === "") return [];
  const limit = maxTypos(wanted);
  const near = models.flatMap(({ id, aliases }) => {
    const typos = Math.min(...[id, ...aliases].map((known) => typosBetween(wanted, plain(known), limit)));
    return typos <= limit ? [{ id, typos }] : [];
  });
  const fewest = Math.min(...near.map(({ typos }) => typos));
  return near
    .filter(({ typos }) => typos === fewest)
    .map(({ id }) => id)
    .slice(0, maxSimilar);
}

/** A 404 that suggests models the caller may have meant, among those for which `isServed` is true. */
export const noSuchModel = (
  { catalog, registry }: Pick<ModelDeps, "catalog" | "registry">,
  name: string,
  isServed: (model: Model) => boolean = () => true,
  param?: string,
): ServiceError =>
  modelNotFound(
    name,
    similarModels(
      catalog.list().filter((model) => isServed(model) && isListed(registry, model)),
      name,
    ),
    param,
  );

/** The catalog's endpoint of models that answer in text, whatever the format of the call. */
const textEndpoint = "/v1/chat/completions";

const taskEndpoints: Partial<Record<Task, string>> = {
  speech: "/v1/audio/speech",
  transcription: "/v1/audio/transcriptions",
};

const routeOf = ({ endpoint, task }: Model): string => (task && taskEndpoints[task]) ?? endpoint;

const isAtEndpoint = ({ endpoint, format, serves }: PaidRoute, model: Model): boolean =>
  serves ? serves(model) : model.endpoint === (format === undefined ? endpoint : textEndpoint);

const isInFormat = (deps: ModelDeps, { format, serves }: PaidRoute, model: Model): boolean =>
  serves !== undefined || format === undefined || isServedIn(deps, format, model);

/**
 * Finds the named model, or the first one of the endpoint if the name is empty. Throws 404 if it is not listed; one that an own
 * key of the caller serves need not be.
 */
export function listedModel(
  deps: ModelDeps,
  route: PaidRoute,
  { name, param }: NamedModel,
  hasOwnKey: (model: Model) => boolean,
): Model {
  const model =
    name === ""
      ? deps.catalog.list().find((each) => isAtEndpoint(route, each) && isListed(deps.registry, each))
      : findModel(deps.catalog, route.format, name);
  if (model && (isListed(deps.registry, model) || hasRefusedKey(deps.registry, model) || hasOwnKey(model)))
    return model;
  throw noSuchModel(deps, name, (each) => isAtEndpoint(route, each) && isInFormat(deps, route, each), param);
}

/** Throws 400 if the model is not for this endpoint, or lacks a feature that the call needs. */
export function checkFit(deps: ModelDeps, route: PaidRoute, call: Pick<ParsedCall, "features">, model: Model): void {
  const { endpoint } = route;
  if (!isAtEndpoint(route, model))
    throw modelNotSupported(`The model '${model.id}' is served at ${routeOf(model)}, not at ${endpoint}.`);
  if (!isInFormat(deps, route, model))
    throw modelNotSupported(`${endpoint} serves only models of its provider; call '${model.id}' at ${textEndpoint}.`);
  for (const [feature, param] of call.features)
    if (!model.features.has(feature))
      throw modelNotSupported(`The model '${model.id}' does not support '${feature}', which ${param} requires.`, param);
}

/**
 * Throws 503 if nothing can take the call now. `upstreams` are those that may serve it, by default all of the model's. What
 * workers say about an upstream does not apply to a caller's own key for it.
 */
export function checkCapacity(
  { registry, backlogLimit }: { registry: WorkerRegistry; backlogLimit: number },
  pool: Pool,
  model: Model,
  upstreams: readonly CallUpstream[] = model.upstreams.map(({ upstream }) => upstream),
): void {
  if (registry.serving(pool) === 0) throw noCapacity(`No worker serves the model '${model.id}' right now.`, 2);
  if (registry.backlog(pool) >= backlogLimit)
    throw noCapacity(`Too many calls wait for models like '${model.id}' right now.`, 5);
  if (!upstreams.some((upstream) => isOwnUpstream(upstream) || registry.upstream(upstream) === "ready"))
    throw noCapacity(`No upstream of the model '${model.id}' can take a call right now.`, 10);
}
