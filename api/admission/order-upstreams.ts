import type { Catalog, Model } from "#catalog";
import { invalidValue, type ServiceError } from "#errors";
import type { ProviderPreferences } from "#formats";
import type { WorkerRegistry } from "#jobs";

export interface OrderDeps {
  readonly catalog: Pick<Catalog, "upstreams">;
  readonly registry: Pick<WorkerRegistry, "upstream" | "speed" | "known">;
  /** Returns a number from 0 to below 1, like `Math.random`. */
  readonly random: () => number;
}

interface Order {
  readonly preferences: ProviderPreferences | undefined;
  readonly stream: boolean;
}

type Served = Model["upstreams"][number];

/** Lists upstreams for an error message: those of which some worker has the key. */
function namesOf({ registry }: OrderDeps, { upstreams }: Model): string {
  const ids = upstreams.map(({ upstream }) => upstream);
  const open = ids.filter((id) => !registry.known() || registry.upstream(id) !== "no key");
  return [...new Set(open)].map((id) => `'${id}'`).join(", ");
}

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
const waitOf = (weight: number, random: () => number): number => -Math.log(1 - random()) / weight;

const hasWeights = (served: readonly Served[]): boolean => served.some(({ weight }) => weight !== undefined);

/** Puts ready upstreams first. Each group is drawn by weight, followed by those without a weight in the catalog's order. */
function drawn({ registry, random }: OrderDeps, served: readonly Served[]): readonly Served[] {
  if (!hasWeights(served)) return served;
  const places = served.map((each) => {
    const isReady = registry.upstream(each.upstream) === "ready";
    const wait = each.weight === undefined ? Number.POSITIVE_INFINITY : waitOf(each.weight, random);
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

/**
 * Returns the ids of the upstreams that may serve the model, in the order in which they are tried, or undefined for all of
 * them in the catalog's order. Throws 400 if the caller's preferences leave none.
 *
 * The fields mean what they mean at OpenRouter: upstreams in `order` come first, then the others by `sort`, else by weight,
 * else in the catalog's order. With `allow_fallbacks: false` only those in `order` are tried or, if there is no `order`,
 * only the first one.
 */
export function orderUpstreams(
  deps: OrderDeps,
  model: Model,
  { preferences, stream }: Order,
): readonly string[] | undefined {
  if (!preferences && !hasWeights(model.upstreams)) return undefined;
  const { order, only, ignore, sort, allow_fallbacks } = preferences ?? {};
  let served = drawn(deps, model.upstreams);
  if (only) served = served.filter(({ upstream }) => only.includes(upstream));
  if (served.length === 0) throw noneRemains(deps, model, "only");
  if (ignore) served = served.filter(({ upstream }) => !ignore.includes(upstream));
  if (served.length === 0) throw noneRemains(deps, model, "ignore");
  if (sort) {
    const keys = new Map(served.map((each) => [each, sortKey(deps, sort, stream, each)]));
    const keyOf = (each: Served) => keys.get(each) ?? 0;
    served = served.toSorted((a, b) => (keyOf(a) === keyOf(b) ? 0 : keyOf(a) - keyOf(b)));
  }
  const ids = [...new Set(served.map(({ upstream }) => upstream))];
  const named = (order ?? []).filter((id) => ids.includes(id));
  const all = [...new Set([...named, ...ids])];
  const tried = allow_fallbacks === false ? (order?.length ? [...new Set(named)] : all.slice(0, 1)) : all;
  if (tried.length === 0) throw noneRemains(deps, model, "order");
  const usual = [...new Set(model.upstreams.map(({ upstream }) => upstream))];
  return tried.join(" ") === usual.join(" ") ? undefined : tried;
}
