import type { Upstream } from "#catalog";
import type { AttemptOutcome } from "#money";
import type { Clock } from "#platform/clock";
import { ConfigError } from "#platform/config";
import type { Environment } from "#platform/process/secret-files";
import type { Counting } from "../counting/index.ts";
import { providers } from "../providers/index.ts";
import { type Breaker, createBreaker } from "./breaker.ts";
import { createSlots } from "./slots.ts";

/** Observes every attempt that ended. The model is the catalog's; only streams have a first event. */
export interface AttemptObserver {
  ended(attempt: { upstream: string; model: string; outcome: AttemptOutcome; seconds: number }): void;
  firstEvent(upstream: string, seconds: number): void;
}

/** One upstream, for the life of the process. Returns undefined if its key or address is not in the environment. */
export function openUpstream(
  upstream: Upstream,
  env: Environment,
  {
    clock,
    counting,
    observeAttempts,
  }: { clock: Clock; counting: Counting; observeAttempts?: AttemptObserver | undefined },
) {
  const { id, provider, concurrency, formats, storesAnswers, quirks, baseUrlEnv, apiKeyEnv } = upstream;
  const value = (name: string | undefined) => (name === undefined ? undefined : env[name] || undefined);
  const apiKey = value(apiKeyEnv);
  if (apiKeyEnv !== undefined && apiKey === undefined) return undefined;
  const given = value(baseUrlEnv);
  const baseUrl = given ?? upstream.baseUrl ?? "";
  if (provider !== "local") {
    if (baseUrl === "") return undefined;
    if (!/^https?:$/.test(URL.parse(baseUrl)?.protocol ?? ""))
      throw new ConfigError(`${given ? baseUrlEnv : `upstream ${id}`}: not an http or https address`);
  }
  const modelBreakers = new Map<string, Breaker>();
  return {
    id,
    provider: providers[provider](
      { baseUrl, apiKey, concurrency, formats, storesAnswers, quirks },
      { clock, counting },
    ),
    slots: createSlots(concurrency),
    /** Counts failed connections: no request can cause those, so failures count for all accounts. */
    connectionBreaker: createBreaker(clock, 1),
    /** Bounded by the models that the catalog names. */
    modelBreaker: (model: string): Breaker => {
      const breaker = modelBreakers.get(model) ?? createBreaker(clock, 2);
      modelBreakers.set(model, breaker);
      return breaker;
    },
    quirks,
    deadlines: upstream.deadlines,
    observeAttempts,
    /** Unix milliseconds by model, until which the upstream asked not to be called. */
    cooldowns: new Map<string, number>(),
  };
}

export type UpstreamState = NonNullable<ReturnType<typeof openUpstream>>;
