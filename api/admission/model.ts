import type { Catalog, Model } from "#catalog";
import { modelNotFound, modelNotSupported } from "#errors";
import type { Format, ParsedCall } from "#formats";
import type { WorkerRegistry } from "#jobs";

/** A model is listed while any upstream of it has its key in some worker; before any worker was seen, all are. */
export const isListed = (registry: WorkerRegistry, model: Model): boolean =>
  !registry.known() || model.upstreams.some(({ upstream }) => registry.upstream(upstream) !== "no key");

/** Whose models a format takes: its provider's, and the local ones, which are its test mode. The others take all. */
const providers: Partial<Record<Format, string>> = { messages: "anthropic", responses: "openai" };

/** Whether calls in this format may name the model. */
export function takes(format: Format, { ownedBy, type }: Model): boolean {
  const provider = providers[format];
  return type === "text" && (provider === undefined || ownedBy === provider || ownedBy === "local");
}

/** By its full id; in a format of a provider's own also by the provider's name for it, in Gemini's for that provider's models alone. */
export function findModel(catalog: Catalog, format: Format | undefined, name: string): Model | undefined {
  const model = catalog.find(name);
  if (model || format === undefined || format === "chat") return model;
  const named = catalog.named(name);
  return format === "gemini" && named?.ownedBy !== "google" ? undefined : named;
}

/** Of the main interface: models that answer in text. */
const textEndpoint = "/v1/chat/completions";

/** What a route says of the models that it serves. */
export interface Serves {
  readonly endpoint: string;
  /** Of a route whose calls are answered in text. */
  readonly format?: Format;
}

export function resolveModel(
  deps: { catalog: Catalog; registry: WorkerRegistry },
  { endpoint, format }: Serves,
  call: Pick<ParsedCall, "model" | "features">,
): Model {
  const model = findModel(deps.catalog, format, call.model);
  if (!model || !isListed(deps.registry, model)) throw modelNotFound(call.model);
  if (model.endpoint !== (format === undefined ? endpoint : textEndpoint))
    throw modelNotSupported(`The model '${model.id}' is a model of ${model.endpoint}, not of ${endpoint}.`);
  if (format !== undefined && !takes(format, model))
    throw modelNotSupported(`${endpoint} is for the models of its provider; call '${model.id}' at ${textEndpoint}.`);
  for (const [feature, param] of call.features)
    if (!model.features.has(feature))
      throw modelNotSupported(`The model '${model.id}' does not support '${feature}', which ${param} asks for.`, param);
  return model;
}
