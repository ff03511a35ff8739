import { cloudParts, filledAddress, type Upstream } from "#catalog";
import type { AttemptOutcome } from "#money";
import type { Clock } from "#platform/clock";
import { ConfigError } from "#platform/config-error";
import type { Logger } from "#platform/logger";
import type { Environment } from "#platform/process/secret-files";
import type { Counting } from "../counting/index.ts";
import { type Provider, providers } from "../providers/index.ts";
import type { UpstreamEndpoint } from "../providers/provider.ts";
import { type Breaker, createBreaker } from "./breaker.ts";
import { createOperatorKey, type OperatorKey } from "./operator-key.ts";
import type { OwnKey } from "./own-key.ts";
import { createSlots, type Slots } from "./slots.ts";

/** An attempt with the operator's key, or with the account's own. The model is the catalog's. */
interface ObservedAttempt {
  readonly upstream: string;
  readonly model: string;
  readonly isOwn: boolean;
}

/** Observes every attempt that ended. Only streams have a first event. */
export interface AttemptObserver {
  ended(attempt: ObservedAttempt, outcome: AttemptOutcome, ms: number): void;
  firstEvent(attempt: ObservedAttempt, ms: number): void;
}

interface OpenDeps {
  readonly clock: Clock;
  readonly counting: Counting;
  readonly log: Logger;
  /** The part of the slots that lines of batches may take, from 0 to 1. */
  readonly lineShare?: number | undefined;
  readonly observeAttempts?: AttemptObserver | undefined;
  /** The environment with the addresses of token servers. It is the endpoint's own unless it is set. */
  readonly hosts?: Environment | undefined;
}

/** One upstream, for the life of the process. Returns undefined if its key or address is not in the environment. */
export function openUpstream(upstream: Upstream, env: Environment, deps: OpenDeps): UpstreamState | undefined {
  const endpoint = operatorEndpoint(upstream, env);
  if (!endpoint) return undefined;
  const state = openEndpoint(upstream, endpoint, deps);
  return {
    ...state,
    baseUrl: endpoint.baseUrl,
    ...(endpoint.apiKey !== undefined && { key: createOperatorKey(upstream.id, state.provider, deps) }),
  };
}

function operatorEndpoint(upstream: Upstream, env: Environment): UpstreamEndpoint | undefined {
  const { id, provider, concurrency, formats, storesAnswers, quirks, baseUrlEnv, apiKeyEnv, addressEnv } = upstream;
  const value = (name: string | undefined) => (name === undefined ? undefined : env[name] || undefined);
  const apiKey = value(apiKeyEnv);
  if (apiKeyEnv !== undefined && apiKey === undefined) return undefined;
  const given = value(baseUrlEnv);
  const parts = {
    resource: value(addressEnv.resource),
    region: upstream.region,
    project: value(addressEnv.project),
  };
  if (cloudParts[provider]?.some((part) => parts[part] === undefined)) return undefined;
  const baseUrl = filledAddress(given ?? upstream.baseUrl ?? "", parts);
  if (provider !== "local") {
    if (baseUrl === "") return undefined;
    if (!/^https?:$/.test(URL.parse(baseUrl)?.protocol ?? ""))
      throw new ConfigError(`${given ? baseUrlEnv : `upstream ${id}`}: not an http or https address`);
  }
  return { baseUrl, apiKey, parts, env, concurrency, formats, storesAnswers, quirks };
}

/** An upstream at this endpoint, with slots, breakers and cooldowns of its own. */
export function openEndpoint(
  { id, provider, concurrency, quirks, deadlines }: Upstream,
  endpoint: UpstreamEndpoint,
  { clock, counting, lineShare = 1, observeAttempts, hosts }: Omit<OpenDeps, "log">,
): UpstreamState {
  const modelBreakers = new Map<string, Breaker>();
  return {
    id,
    provider: providers[provider](endpoint, { clock, counting, ...(hosts && { hosts }) }),
    slots: createSlots(concurrency, Math.max(1, Math.floor(concurrency * lineShare))),
    connectionBreaker: createBreaker(clock, 1),
    modelBreaker: (model: string): Breaker => {
      const breaker = modelBreakers.get(model) ?? createBreaker(clock, 2);
      modelBreakers.set(model, breaker);
      return breaker;
    },
    quirks,
    deadlines,
    observeAttempts,
    cooldowns: new Map<string, number>(),
  };
}

export interface UpstreamState extends Pick<Upstream, "id" | "quirks" | "deadlines"> {
  readonly provider: Provider;
  readonly slots: Slots;
  /** Counts failed connections: no request can cause those, so failures count for all accounts. */
  readonly connectionBreaker: Breaker;
  /** Bounded by the models that the catalog names. */
  readonly modelBreaker: (model: string) => Breaker;
  readonly observeAttempts: AttemptObserver | undefined;
  /** Unix milliseconds by model, until which the upstream asked not to be called. */
  readonly cooldowns: Map<string, number>;
  /** The latest failure that was not the fault of its request. */
  lastFailure?: { readonly at: number; readonly message: string };
  /** Set if it is called with a provider key of the account. */
  readonly own?: OwnKey;
  /** These are set if it is called for the operator. The key is not set if the upstream needs none. */
  readonly baseUrl?: string;
  readonly key?: OperatorKey;
}
