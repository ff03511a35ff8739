import { createHash } from "node:crypto";
import type { Catalog, Model } from "#catalog";
import { byokAuthenticationFailed, invalidValue, type ServiceError } from "#errors";
import type { ProviderPreferences } from "#formats";
import type { CallUpstream, WorkerRegistry } from "#jobs";
import type { ProviderKey } from "#provider-keys";
import { servedAt } from "./model.ts";

export interface OrderDeps {
  readonly catalog: Pick<Catalog, "upstreams">;
  readonly registry: Pick<WorkerRegistry, "upstream" | "hasKey" | "speed" | "known">;
  /** Returns a number from 0 to below 1, like `Math.random`. */
  readonly random: () => number;
}

interface Order {
  readonly preferences: ProviderPreferences | undefined;
  readonly stream: boolean;
  readonly own?: readonly ProviderKey[];
  /** Identifies the conversation of the call. It is asked for only if the answer can matter. */
  readonly conversation?: (() => string) | undefined;
}

type Served = Model["upstreams"][number];

/** Lists upstreams for an error message: those of which some worker has the key. */
const namesOf = ({ registry }: OrderDeps, model: Model): string =>
  servedAt(registry, model)
    .map((id) => `'${id}'`)
    .join(", ");

const lists = ["order", "only", "ignore"] as const;

/** Throws 400 for an upstream that is not in the catalog. */
export function checkNames(deps: OrderDeps, model: Model, preferences: ProviderPreferences): void {
  for (const list of lists)
    preferences[list]?.forEach((name, at) => {
      if (deps.catalog.upstreams.has(name)) return;
      const param = `provider.${list}[${at}]`;
      throw invalidValue(
        param,
        `${param}: there is no upstream '${name}'; '${model.id}' is served by ${namesOf(deps, model)}.`,
      );
    });
}

const noneRemains = (deps: OrderDeps, model: Model, field: string): ServiceError =>
  invalidValue(
    `provider.${field}`,
    `provider.${field}: no upstream of the model '${model.id}' remains; it is served by ${namesOf(deps, model)}.`,
  );

/**
 * Samples the waiting time of a Poisson process with rate `weight`. The smallest of several samples is that of a given
 * upstream with a probability proportional to its weight.
 */
const waitOf = (weight: number, random: number): number => -Math.log(1 - random) / weight;

const hasWeights = (served: readonly Served[]): boolean => served.some(({ weight }) => weight !== undefined);

/**
 * Weighted rendezvous hashing: the numbers that the samples are made from depend on the conversation and the upstream alone.
 * A conversation stays at its upstream without any state, and leaves it only while that is not ready
 * (docs/adr/0038-conversations-stay-at-an-upstream.md).
 */
function numbersOf(model: string, conversation: string): (served: Served) => number {
  const hashOf = (...parts: readonly (string | Buffer)[]) => {
    const hash = createHash("sha256");
    for (const part of parts) hash.update(part).update("\n");
    return hash.digest();
  };
  // The conversation may have 48 KB, so it is hashed once.
  const own = hashOf(model, conversation);
  return (served) => hashOf(own, served.upstream, served.model).readUIntBE(0, 6) / 2 ** 48;
}

/** Puts ready upstreams first. Each group is drawn by weight, followed by those without a weight in the catalog's order. */
function drawn({ registry, random }: OrderDeps, { id, upstreams: served }: Model, conversation: Order["conversation"]) {
  const weighted = served.filter(({ weight }) => weight !== undefined);
  if (weighted.length === 0) return served;
  const numberOf = conversation && weighted.length > 1 ? numbersOf(id, conversation()) : random;
  const places = served.map((each) => {
    const isReady = registry.upstream(each.upstream) === "ready";
    const wait = each.weight === undefined ? Number.POSITIVE_INFINITY : waitOf(each.weight, numberOf(each));
    return { each, isReady, wait };
  });
  return places
    .toSorted((a, b) => Number(b.isReady) - Number(a.isReady) || (a.wait === b.wait ? 0 : a.wait - b.wait))
    .map(({ each }) => each);
}

/** Sorts ascending; upstreams without data come last. */
function sortKey(
  { registry }: OrderDeps,
  sort: NonNullable<ProviderPreferences["sort"]>,
  stream: boolean,
  { upstream, model, cost }: Served,
): number {
  const unknown = Number.POSITIVE_INFINITY;
  if (sort === "price") return cost ? Number(cost.rank) : unknown;
  const speed = registry.speed(upstream, model);
  if (sort === "latency") return (stream ? speed?.streamMs : speed?.answerMs) ?? unknown;
  return speed?.tokensPerSecond === undefined ? unknown : -speed.tokensPerSecond;
}

/** An upstream that may serve the model: with the operator's key, or with one of the account's. */
type Place = Served & { readonly key?: ProviderKey };

const isUsable = ({ status }: ProviderKey): boolean => status !== "invalid";

/** The region of a place. The operator's promise about data holds for the region and the account of the upstream. */
function placeOf({ catalog }: OrderDeps, { upstream: id, key }: Place) {
  const upstream = catalog.upstreams.get(id);
  const region = key?.config.region ?? upstream?.region;
  const isPromised = region === upstream?.region && key?.config.resource === undefined;
  return { region, dataResidency: isPromised ? upstream?.dataResidency : undefined };
}

/** Removes what the caller excluded. Throws 400 if nothing remains. */
function filtered(deps: OrderDeps, model: Model, all: readonly Place[], preferences: ProviderPreferences) {
  const { only, ignore, regions, data_residency } = preferences;
  const filters: readonly (readonly [field: string, keeps: ((place: Place) => boolean) | null | undefined])[] = [
    ["only", only && (({ upstream }) => only.includes(upstream))],
    ["ignore", ignore && (({ upstream }) => !ignore.includes(upstream))],
    ["regions", regions && ((place) => regions.includes(placeOf(deps, place).region ?? ""))],
    [
      "data_residency",
      data_residency == null ? null : (place) => placeOf(deps, place).dataResidency === data_residency,
    ],
  ];
  let places = all;
  for (const [field, keeps] of filters) {
    if (keeps) places = places.filter(keeps);
    if (places.length === 0) throw noneRemains(deps, model, field);
  }
  return places;
}

/**
 * Removes what the account's keys and `byok` exclude. A key of mode `only` excludes the operator's key for its upstream,
 * whatever the caller asks for, and even if a filter has left that key out (`all` has those); if the provider does not accept it any more, it excludes every key of the operator, so that
 * the calls fail instead of being charged in full.
 */
function permitted(
  { registry }: OrderDeps,
  model: Model,
  places: readonly Place[],
  { byok }: ProviderPreferences,
  all: readonly ProviderKey[],
): readonly Place[] {
  const own = places.flatMap(({ key }) => key ?? []);
  const isStrict = ({ mode }: ProviderKey) => mode === "only";
  const isClosed = byok === "only" || (byok !== "never" && !own.filter(isStrict).every(isUsable));
  const closed = new Set(all.filter(isStrict).map(({ upstream }) => upstream));
  const remaining = places.filter(({ upstream, key }) =>
    key
      ? byok !== "never" && isUsable(key)
      : !isClosed &&
        !closed.has(upstream) &&
        // Otherwise the hold would cover a call that this upstream cannot take.
        !(own.length > 0 && registry.known() && !registry.hasKey(upstream)),
  );
  if (remaining.length > 0) return remaining;
  const refused = own.find((key) => !isUsable(key));
  if (refused && byok !== "never") throw byokAuthenticationFailed(refused);
  throw invalidValue(
    "provider.byok",
    byok === "never"
      ? `provider.byok: only the account's own provider keys serve the model '${model.id}'.`
      : `provider.byok: no provider key of the account serves the model '${model.id}'.`,
  );
}

/** Own keys are tried before or after all of the operator's. */
const groupOf = ({ key }: Place): number => (key === undefined ? 1 : key.mode === "last" ? 2 : 0);

/**
 * Returns the upstreams that may serve the model, in the order in which they are tried, or undefined for all of the
 * operator's in the catalog's order. Throws 400 if the caller's preferences leave none, and 424 if only own keys may serve it
 * that the provider does not accept any more. `own`: the account's keys for the model, in their order.
 *
 * The fields mean what they mean at OpenRouter: upstreams in `order` come first, then the others by `sort`, else by weight (a
 * conversation stays at its upstream), else in the catalog's order; own keys by their own order. That applies within each
 * group: own keys to be tried first, the operator's upstreams, own keys to be tried last. With `allow_fallbacks: false` only
 * those in `order` are tried or, if there is no `order`, only the first one.
 */
export function orderUpstreams(
  deps: OrderDeps,
  model: Model,
  { preferences, stream, conversation, own = [] }: Order,
): readonly CallUpstream[] | undefined {
  if (!preferences && own.length === 0 && !hasWeights(model.upstreams)) return undefined;
  const { order, sort, allow_fallbacks } = preferences ?? {};
  const ownPlaces = own.flatMap((key): Place[] => {
    const served = model.upstreams.find(({ upstream }) => upstream === key.upstream);
    return served ? [{ ...served, key }] : [];
  });
  const all: readonly Place[] = [...ownPlaces, ...drawn(deps, model, conversation)];
  const asked = preferences ? filtered(deps, model, all, preferences) : all;
  const places = own.length > 0 || preferences?.byok ? permitted(deps, model, asked, preferences ?? {}, own) : asked;
  const rankOf = ({ upstream }: Place) => {
    const rank = order?.indexOf(upstream) ?? -1;
    return rank < 0 ? Number.POSITIVE_INFINITY : rank;
  };
  const keys = new Map(sort ? places.map((each) => [each, sortKey(deps, sort, stream, each)]) : []);
  const keyOf = (each: Place) => keys.get(each) ?? 0;
  const sorted = places.toSorted(
    (a, b) => groupOf(a) - groupOf(b) || difference(rankOf(a), rankOf(b)) || difference(keyOf(a), keyOf(b)),
  );
  // The catalog may list an upstream twice, under several names for the model.
  const unique = [...new Map(sorted.map((each) => [`${each.upstream} ${each.key?.id ?? ""}`, each])).values()];
  const tried =
    allow_fallbacks === false
      ? order?.length
        ? unique.filter(({ upstream }) => order.includes(upstream))
        : unique.slice(0, 1)
      : unique;
  if (tried.length === 0) throw noneRemains(deps, model, "order");
  const usual = [...new Set(model.upstreams.map(({ upstream }) => upstream))];
  const isUsual =
    tried.length === usual.length && tried.every(({ key, upstream }, at) => !key && upstream === usual[at]);
  return isUsual ? undefined : tried.map(({ upstream, key }) => (key ? { upstream, key: key.id } : upstream));
}

/** Infinite values are equal. */
const difference = (a: number, b: number): number => (a === b ? 0 : a - b);
