import { invalidValue } from "#errors";
import { object } from "./loose.ts";
import type { Measure } from "./measure.ts";
import { isSet } from "./read.ts";

/** The lifetimes of a format's breakpoints, as their field `ttl` has them. The longer one has a price of its own. */
export interface Lifetimes {
  readonly short: string;
  readonly long: string;
}

/** Notes that the request asks for a write to the prompt cache. A lifetime that has no known price is refused. */
export function noteCacheWrite(holder: unknown, at: string, { short, long }: Lifetimes, measure: Measure): void {
  if (!isSet(holder)) return;
  const { ttl } = object(holder);
  if (isSet(ttl) && ttl !== short && ttl !== long)
    throw invalidValue(`${at}.ttl`, `${at}.ttl must be '${short}' or '${long}'.`);
  if (ttl === long) measure.features.set("cache_retention", `${at}.ttl`);
  measure.cacheWrites = ttl === long ? "long" : (measure.cacheWrites ?? "short");
}

export const anthropicLifetimes: Lifetimes = { short: "5m", long: "1h" };
export const openaiLifetimes: Lifetimes = { short: "30m", long: "12h" };
