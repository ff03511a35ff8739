import { refuse } from "#formats";
import { isSet, type JsonObject, object, omitNullish } from "#json";
import { type CacheLifetime, type ConvertedRequest, ignoredParams } from "./converter.ts";

interface Holders {
  readonly [field: string]: Holders;
}

/** The nested objects that may carry breakpoints, in chat and in Messages. */
const holders: Holders = {
  system: {},
  tools: { function: {} },
  messages: { content: { content: {}, source: { content: {} } } },
};

type MapHolder = (holder: JsonObject) => JsonObject;

/** Returns the same object if nothing changes, without allocating: most requests have no breakpoints. */
function mapHolders(holder: JsonObject, inner: Holders, map: MapHolder): JsonObject {
  let mapped = map(holder);
  for (const field in inner) {
    const value = mapped[field];
    if (typeof value !== "object" || value === null) continue;
    const innermost = inner[field] ?? {};
    const changed = Array.isArray(value) ? mapList(value, innermost, map) : mapHolders(object(value), innermost, map);
    if (changed !== value) mapped = { ...mapped, [field]: changed };
  }
  return mapped;
}

function mapList(values: readonly unknown[], inner: Holders, map: MapHolder): readonly unknown[] {
  let mapped: unknown[] | undefined;
  values.forEach((each, i) => {
    if (typeof each !== "object" || each === null) return;
    const changed = mapHolders(object(each), inner, map);
    if (changed !== each) (mapped ??= [...values])[i] = changed;
  });
  return mapped ?? values;
}

/** Removes the breakpoints, or their lifetimes, that the upstream does not support or the model has no price for. */
export function limitCacheControl(request: JsonObject, lifetime: CacheLifetime = "none"): ConvertedRequest {
  if (lifetime === "1h") return { request, ignored: [] };
  const ignored = ignoredParams();
  const limited = mapHolders(request, holders, (holder) => {
    if (!("cache_control" in holder)) return holder;
    const { cache_control, ...rest } = holder;
    if (lifetime === "none") {
      ignored.add("cache_control", cache_control);
      return rest;
    }
    const { ttl, ...shorter } = object(cache_control);
    if (ttl !== "1h") return holder;
    ignored.add("cache_control.ttl", ttl);
    return { ...holder, cache_control: shorter };
  });
  return { request: limited, ignored: ignored.names() };
}

/** The provider rejects more with a 400. */
const maxBreakpoints = 4;

/** Converts the breakpoints of a chat request (OpenRouter's extension), and counts them. */
export function breakpoints() {
  let count = 0;
  return {
    of({ cache_control }: JsonObject, path: string): { readonly cache_control?: JsonObject } {
      if (!isSet(cache_control)) return {};
      count++;
      if (count > maxBreakpoints)
        refuse(
          path ? `${path}.cache_control` : "cache_control",
          `this model supports at most ${maxBreakpoints} cache breakpoints`,
        );
      return { cache_control: omitNullish({ type: "ephemeral", ttl: object(cache_control)["ttl"] }) };
    },
  };
}

export type Breakpoints = ReturnType<typeof breakpoints>;
