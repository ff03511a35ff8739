import type { Catalog, Model } from "#catalog";
import { modelNotFound, modelNotSupported } from "#errors";
import type { ParsedCall } from "#formats";
import type { Picture } from "#jobs";

/** A model is listed while any upstream of it has its key in some worker; before any worker was seen, all are. */
export const isListed = (picture: Picture, model: Model): boolean =>
  !picture.known() || model.upstreams.some(({ upstream }) => picture.upstream(upstream) !== "no key");

export function resolveModel(
  deps: { catalog: Catalog; picture: Picture },
  endpoint: string,
  call: Pick<ParsedCall, "model" | "features">,
): Model {
  const model = deps.catalog.find(call.model);
  if (!model || !isListed(deps.picture, model)) throw modelNotFound(call.model);
  if (model.endpoint !== endpoint)
    throw modelNotSupported(`The model '${model.id}' is a model of ${model.endpoint}, not of ${endpoint}.`);
  for (const [feature, param] of call.features)
    if (!model.features.has(feature))
      throw modelNotSupported(`The model '${model.id}' does not support '${feature}', which ${param} asks for.`, param);
  return model;
}
