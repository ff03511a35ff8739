import type { Input, Model } from "#catalog";
import { modelNotAllowed, ServiceError } from "#errors";
import { estimateTokens, type NamedModel, type ParsedCall } from "#formats";
import { type CallUpstream, jobCatalog } from "#jobs";
import { allowsModel } from "#key-records";
import type { Caller } from "#keys";
import type { ProviderKey } from "#provider-keys";
import type { PaidRoute } from "../paid-route.ts";
import { checkCapacity, checkFit, listedModel, type ModelDeps } from "./model.ts";
import { checkNames, type OrderDeps, orderUpstreams } from "./order-upstreams.ts";
import { ownKeysAt } from "./own-keys.ts";

export type TargetDeps = ModelDeps & OrderDeps & { readonly backlogLimit: number };

/** A model that can take the call now. */
export interface Target {
  readonly model: Model;
  /** The caller's name for it, if that is not its id. */
  readonly name?: string;
  /** The upstreams that may serve it, in the order in which they are tried. The default is all, in the catalog's order. */
  readonly upstreams?: readonly CallUpstream[];
  /** Set for calls for images or media. */
  readonly input?: Input;
}

/** The estimate from bytes may be too high by this factor. */
const estimateMargin = 1.25;

const isTooLong = ({ type, contextLength }: Model, { textBytes }: ParsedCall): boolean =>
  type === "text" && estimateTokens(textBytes) > contextLength * estimateMargin;

/** Throws 403 if the key may not call the model. It applies to fallbacks too, whatever name the call uses. */
function allowedModel(allowed: Caller["models"], model: Model, { param }: NamedModel): Model {
  if (!allowsModel(allowed, model.id)) throw modelNotAllowed(model.id, param);
  return model;
}

/** The models that the call names, with the names. Throws 404 for one that is not listed, and 403 if the key may not call it. */
export function namedModels(
  deps: ModelDeps,
  route: PaidRoute,
  { models, model: only, preferences }: ParsedCall,
  allowed: Caller["models"],
  own: readonly ProviderKey[],
): ReadonlyMap<Model, string> {
  const named: readonly NamedModel[] = models ?? [{ name: only, param: "model" }];
  const hasOwnKey = (model: Model) => preferences?.byok !== "never" && ownKeysAt(own, model).length > 0;
  const names = new Map<Model, string>();
  for (const each of named) {
    const model = allowedModel(allowed, listedModel(deps, route, each, hasOwnKey), each);
    if (!names.has(model)) names.set(model, each.name);
  }
  return names;
}

/**
 * Returns the models that may serve the call, in the order in which they are tried. Every name must be that of a listed
 * model that the key may call. Models that cannot take the call are skipped; if none can, the first one's error is thrown.
 * `own`: the provider keys that the caller may use.
 */
export function findTargets(
  deps: TargetDeps,
  route: PaidRoute,
  call: ParsedCall,
  { account, models: allowed }: Pick<Caller, "account" | "models">,
  own: readonly ProviderKey[],
): readonly [Target, ...Target[]] {
  const { preferences, stream, sessionId, conversation } = call;
  const conversationId = conversation && (() => `${account}\n${sessionId ?? conversation()}`);
  const pool = jobCatalog[route.job].pool;
  const names = namedModels(deps, route, call, allowed, own);
  const [preferred] = names.keys();
  if (preferences && preferred) checkNames(deps, preferred, preferences);
  const targets: Target[] = [];
  const errors: unknown[] = [];
  for (const [model, name] of names)
    try {
      checkFit(deps, route, call, model);
      const input = call.input && deps.catalog.checkInput(model, call.input);
      const upstreams = orderUpstreams(deps, model, {
        preferences,
        stream,
        conversation: conversationId,
        own: ownKeysAt(own, model),
      });
      checkCapacity(deps, pool, model, upstreams);
      const isById = name === "" || name === model.id;
      targets.push({ model, ...(!isById && { name }), ...(upstreams && { upstreams }), ...(input && { input }) });
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      errors.push(error);
    }
  const fitting = targets.filter(({ model }) => !isTooLong(model, call));
  const [first, ...rest] = fitting.length > 0 ? fitting : targets;
  if (!first) throw errors[0];
  return [first, ...rest];
}
