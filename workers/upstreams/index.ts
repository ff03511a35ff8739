import type { Catalog, Model, Upstream } from "#catalog";
import type { Format } from "#formats";
import { isPaymentAccount } from "#money";
import type { Clock } from "#platform/clock";
import { ConfigError } from "#platform/config";
import type { Logger } from "#platform/logger";
import { type Provider, providers, UpstreamFailure } from "../providers/index.ts";
import { begin, type Candidate, itemsOf, type UpstreamAttempt, type UpstreamState } from "./attempt.ts";
import { type Breaker, createBreaker } from "./breaker.ts";
import { createSlots, firstFree } from "./slots.ts";
import { verdict } from "./verdict.ts";

/**
 * Who serves a call: the upstreams of its model in order, each with a bound on calls in flight, a breaker, and deadlines.
 *
 * - A failure before the first item moves on to the next upstream; after it there is no candidate back.
 * - An upstream that is full is passed over; if all are, the call waits in line for whichever is free first.
 * - 429, and 503 with Retry-After: left alone for that model until then (a minute at most). No failure of its health.
 * - A refused request (400) is the caller's to fix: no other upstream is asked, and its text passes to the caller.
 * - A caller who disconnects says nothing of the upstream. The slot is free and the connection closed at once.
 * - Failures are counted by upstream and model, and by who called (`upstreams/breaker.ts`): what one account's requests
 *   provoke takes no model from the others. Connections that do not come about are counted for the upstream as a whole,
 *   whoever calls. All who pay by x402 count as one account: theirs are new with each payment.
 *
 * `firstByteMs` runs until the first item (of a JSON answer: until all of it), `silenceMs` from one item's being asked for
 * to its coming, `totalMs` over the attempt.
 *
 * Rejects with a ServiceError, with the signal's reason, or with what `attempt` itself threw. `progress` tells at every
 * moment who was asked, however the call ends.
 */
export interface Upstreams {
  /** `open`: no connection comes about, or every model that it serves fails for everyone. */
  states(): Record<string, "ready" | "open" | "no key">;
  /** `can`: an upstream whose provider cannot is no candidate at all. */
  once<T>(
    model: Model,
    signal: AbortSignal,
    progress: Progress,
    attempt: Attempt<Promise<T>>,
    log?: Logger,
    can?: Can,
  ): Promise<T>;
  /** Resolves when the first item is there. Items must be read to the end, or `return` called, as `for await` does. */
  stream<T>(
    model: Model,
    signal: AbortSignal,
    progress: Progress,
    attempt: Attempt<AsyncIterable<T>>,
    log?: Logger,
  ): Promise<AsyncIterableIterator<T>>;
  /** Cuts what is under candidate. */
  close(): Promise<void>;
}

/** Asks one upstream under its own name for the model, in one of the formats. May be called again for the next one. */
type Attempt<R> = (to: AskedUpstream, signal: AbortSignal) => R;

type Can = (provider: Provider) => boolean;

export interface AskedUpstream {
  readonly provider: Provider;
  readonly model: string;
  readonly formats: readonly Format[];
  /** What becomes of fields of a chat request that it may not know. */
  readonly unknownFields: Upstream["unknownFields"];
}

interface Progress {
  /** Who calls: breakers count by it. */
  readonly account?: string;
  /** The last that was asked. */
  upstream?: string;
  /** How many were asked. */
  attempts: number;
}

export function createUpstreams(deps: {
  catalog: Pick<Catalog, "upstreams" | "list">;
  env: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  log: Logger;
}): Upstreams {
  const { catalog, clock } = deps;
  const states = new Map<string, UpstreamState>();
  for (const upstream of catalog.upstreams.values()) {
    const provider = connect(upstream, deps.env, clock);
    if (!provider) continue;
    states.set(upstream.id, {
      id: upstream.id,
      provider,
      slots: createSlots(upstream.concurrency),
      connecting: createBreaker(clock, 1),
      breakerOf: createBreakers(clock),
      unknownFields: upstream.unknownFields,
      deadlines: upstream.deadlines,
      cooldowns: new Map(),
    });
  }

  const closedForMs = ({ upstream, model }: Pick<Candidate, "upstream" | "model">, account?: string) =>
    Math.max(
      upstream.connecting.closedForMs(account),
      upstream.breakerOf(model).closedForMs(account),
      (upstream.cooldowns.get(model) ?? 0) - clock.now(),
    );

  /** Tries the candidates in order until `run` resolves for one; the upstream's slot is then its affair. */
  const route = async <R>(
    model: Model,
    signal: AbortSignal,
    progress: Progress,
    log: Logger,
    run: (call: UpstreamAttempt) => Promise<R>,
    can: Can = () => true,
  ): Promise<R> => {
    const candidates = model.upstreams.flatMap((entry): Candidate[] => {
      const upstream = states.get(entry.upstream);
      return upstream && can(upstream.provider)
        ? [{ upstream, slots: upstream.slots, model: entry.model, formats: entry.formats ?? upstream.provider.speaks }]
        : [];
    });
    const account = payerOf(progress);
    const isReady = (candidate: Candidate) => closedForMs(candidate, account) <= 0;
    const untried = new Set(candidates);
    const failures: UpstreamFailure[] = [];
    for (;;) {
      signal.throwIfAborted();
      const ready = [...untried].filter(isReady);
      if (ready.length === 0) break;
      const candidate = await firstFree(ready, signal);
      // While the call stood in line, much may have happened.
      if (signal.aborted || !isReady(candidate)) {
        candidate.slots.release();
        continue;
      }
      untried.delete(candidate);
      progress.upstream = candidate.upstream.id;
      progress.attempts++;
      const call = begin(candidate, account, signal, clock);
      try {
        return await run(call);
      } catch (error) {
        const failure = call.failed(error);
        if (!(failure instanceof UpstreamFailure)) throw failure;
        logFailure(log, candidate, failure);
        failures.push(failure);
        if (failure.kind === "refused") break;
      }
    }
    const waits = candidates.map((candidate) => closedForMs(candidate, account)).filter((ms) => ms > 0);
    throw verdict(failures, untried.size > 0, Math.min(...waits));
  };

  const served = Map.groupBy(
    catalog.list().flatMap((model) => model.upstreams),
    ({ upstream }) => upstream,
  );
  const isOpen = ({ id, connecting, breakerOf }: UpstreamState) => {
    if (connecting.closedForMs() > 0) return true;
    const models = served.get(id) ?? [];
    return models.length > 0 && models.every(({ model }) => breakerOf(model).closedForMs() > 0);
  };

  return {
    states: () =>
      Object.fromEntries(
        [...catalog.upstreams.keys()].map((id) => {
          const upstream = states.get(id);
          return [id, upstream === undefined ? "no key" : isOpen(upstream) ? "open" : "ready"];
        }),
      ),
    once: (model, signal, progress, attempt, log = deps.log, can) =>
      route(
        model,
        signal,
        progress,
        log,
        async (call) => {
          const value = await call.within("firstByteMs", attempt(askedOf(call), call.signal));
          call.succeeded();
          return value;
        },
        can,
      ),
    stream: (model, signal, progress, attempt, log = deps.log) =>
      route(model, signal, progress, log, async (call) => {
        const source = attempt(askedOf(call), call.signal)[Symbol.asyncIterator]();
        const first = await call.within("firstByteMs", source.next());
        if (first.done) throw new UpstreamFailure("unavailable", "a stream without an item");
        call.answered();
        return itemsOf(call, first, source, (failure) => logFailure(log, call.candidate, failure));
      }),
    close: async () => {
      await Promise.all([...states.values()].map(({ provider }) => provider.close()));
    },
  };
}

const askedOf = ({ candidate: { upstream, model, formats } }: UpstreamAttempt): AskedUpstream => ({
  provider: upstream.provider,
  model,
  formats,
  unknownFields: upstream.unknownFields,
});

function logFailure(log: Logger, { upstream, model }: Candidate, { kind, status, message }: UpstreamFailure): void {
  // A refusal may quote the prompt.
  const err = kind === "refused" ? undefined : message;
  log.warn({ upstream: upstream.id, upstreamModel: model, kind, status, err }, "upstream failed");
}

/** As breakers tell callers apart. */
const payerOf = ({ account = "" }: Progress) => (isPaymentAccount(account) ? "x402" : account);

/** By the models that the catalog names: no more than these are asked for. */
function createBreakers(clock: Clock): (model: string) => Breaker {
  const breakers = new Map<string, Breaker>();
  return (model) => {
    const breaker = breakers.get(model) ?? createBreaker(clock, 2);
    breakers.set(model, breaker);
    return breaker;
  };
}

/** Undefined for an upstream whose key or address is not in the environment. */
function connect(upstream: Upstream, env: Readonly<Record<string, string | undefined>>, clock: Clock) {
  const { id, provider, concurrency, formats, storesAnswers, baseUrlEnv, apiKeyEnv } = upstream;
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
  return providers[provider]({ baseUrl, apiKey, concurrency, formats, storesAnswers }, { clock });
}
