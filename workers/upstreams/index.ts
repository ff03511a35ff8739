/**
 * Serves a call by the upstreams of its models, in order. Each upstream has a limit of concurrent attempts, a breaker,
 * cooldowns and deadlines.
 *
 * - A failure before the first item moves on to the next upstream (`failover.ts`); after it the call fails.
 * - A full upstream is skipped; if all are full, the call waits for the first free slot.
 * - A 429, or a 503 with Retry-After, starts a cooldown for that model (a minute at most). It does not count as a failure
 *   of the upstream's health.
 * - A refused request (400) is the caller's fault: the caller gets the text, and no other upstream of the model is tried
 *   unless the limit is that host's own. Another model of the call may take it.
 * - A caller who disconnects says nothing about the upstream. The slot and the connection are released at once.
 * - Breakers count failures by upstream, model and account (`breaker.ts`), failed connections for the whole upstream.
 *
 * `firstByteMs` runs until the first item (for JSON, until the whole answer), `silenceMs` while the next item is awaited,
 * `totalMs` over the attempt.
 *
 * Rejects with a ServiceError, with the signal's reason, or with what `work` itself threw.
 */
import type { Catalog } from "#catalog";
import { ServiceError } from "#errors";
import { isOwnUpstream, type UpstreamState as WorkerUpstreamState } from "#jobs";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { Span } from "#platform/observability/tracing";
import type { Environment } from "#platform/process/secret-files";
import type { ProviderKeys } from "#provider-keys";
import type { Secrets } from "#secrets";
import type { Counting } from "../counting/index.ts";
import { type Provider, UpstreamFailure } from "../providers/index.ts";
import type { AttemptRecord, Candidate, Target, UpstreamAttempt } from "./attempt.ts";
import { brokenStream, failover, logFailure, type Unopened, type UpstreamRequest } from "./failover.ts";
import { batchUpstreamOf } from "./in-batch.ts";
import { createOwnKeys, type OpenedKeys } from "./own-keys.ts";
import { createSpeeds } from "./speeds.ts";
import { type AttemptObserver, openUpstream, type UpstreamState } from "./upstream.ts";

export { type AttemptRecord, type Candidate, providerMs, type Target } from "./attempt.ts";
export type { AttemptObserver } from "./upstream.ts";

/** Calls one upstream. Called again for the next one after a failure. */
type Work<T> = (candidate: Candidate, signal: AbortSignal, span: Span | undefined) => Promise<T>;

export function createUpstreams(deps: {
  catalog: Pick<Catalog, "upstreams" | "list" | "find" | "inBatch">;
  env: Environment;
  clock: Clock;
  counting: Counting;
  /** The part of each upstream's slots that lines of batches may take, from 0 to 1. */
  lineShare?: number;
  observeAttempts?: AttemptObserver;
  providerKeys: Pick<ProviderKeys, "find" | "noteState" | "noteUsed">;
  secrets: Pick<Secrets, "open">;
  log: Logger;
}) {
  const { catalog, clock } = deps;
  const states = new Map<string, UpstreamState>();
  for (const upstream of catalog.upstreams.values()) {
    const state = openUpstream(upstream, deps.env, deps);
    if (state) states.set(upstream.id, state);
  }

  const speeds = createSpeeds(clock);
  const ownKeys = createOwnKeys(deps);

  type Served = Target["model"]["upstreams"][number];
  const candidatesOf = (
    target: Target,
    supports: (provider: Provider) => boolean,
    opened: OpenedKeys,
  ): (Candidate | Unopened)[] => {
    const served = target.model.upstreams;
    const at = (upstream: UpstreamState | undefined, { model, formats, cost }: Served): Candidate[] =>
      upstream && supports(upstream.provider)
        ? [{ target, upstream, model, formats: formats ?? upstream.provider.speaks, cost }]
        : [];
    const chosen = target.upstreams;
    if (!chosen) return served.flatMap((each) => at(states.get(each.upstream), each));
    return chosen.flatMap((each): (Candidate | Unopened)[] => {
      const [id, upstream] = isOwnUpstream(each) ? [each.upstream, opened.get(each.key)] : [each, states.get(each)];
      if (upstream instanceof ServiceError) return [{ target, refusal: upstream }];
      return served.filter((one) => one.upstream === id).flatMap((one) => at(upstream, one));
    });
  };
  const noKeys: OpenedKeys = new Map();

  function tryEach<R>(request: UpstreamRequest, run: (attempt: UpstreamAttempt) => Promise<R>): Promise<R> {
    const { targets, account, supports = () => true } = request;
    const tryWith = (opened: OpenedKeys) =>
      failover(
        request,
        targets.flatMap((target) => candidatesOf(target, supports, opened)),
        clock,
        run,
      );
    const own = targets.flatMap(({ upstreams = [] }) => upstreams.filter(isOwnUpstream));
    return own.length === 0 ? tryWith(noKeys) : ownKeys.using(account, own, tryWith);
  }

  const modelsByUpstream = Map.groupBy(
    catalog.list().flatMap((model) => model.upstreams),
    ({ upstream }) => upstream,
  );
  const isOpen = ({ id, connectionBreaker, modelBreaker }: UpstreamState) => {
    if (connectionBreaker.blockedForMs() > 0) return true;
    const models = modelsByUpstream.get(id) ?? [];
    return models.length > 0 && models.every(({ model }) => modelBreaker(model).blockedForMs() > 0);
  };

  function stateOf(upstream: UpstreamState | undefined): WorkerUpstreamState {
    if (!upstream) return "no key";
    if (upstream.key?.blockedForMs()) return "key refused";
    return isOpen(upstream) ? "open" : "ready";
  }

  return {
    /**
     * `open` means that connections fail, or that every model that it serves fails for everyone; `key refused` that its
     * provider does not accept the key.
     */
    states: () => Object.fromEntries([...catalog.upstreams.keys()].map((id) => [id, stateOf(states.get(id))])),
    /** The address that is called, and the latest failure, of each upstream with a key. */
    details: () =>
      Object.fromEntries(
        [...states.values()].map(({ id, baseUrl = "", lastFailure }) => [
          id,
          { ...(baseUrl && { baseUrl: withoutCredentials(baseUrl) }), ...(lastFailure && { lastFailure }) },
        ]),
      ),
    /** The attempts that run, and the calls that wait for a slot, by upstream. */
    loads: () => [...states.values()].map(({ id, slots }) => ({ upstream: id, ...slots.load() })),
    /** Recent speeds of the upstreams, for the worker's record. */
    speeds: () => speeds.recent(),
    /** Records the speed of the upstream that answered. */
    noteSpeed({ candidate, attempts }: AttemptRecord, outputTokens: number | undefined): void {
      const { startedAt, firstAt, endedAt } = attempts.at(-1) ?? {};
      // The speed of a customer's account at the provider says nothing about the operator's.
      if (!candidate || candidate.upstream.own || startedAt === undefined || endedAt === undefined) return;
      const totalMs = Math.max(1, endedAt - startedAt);
      speeds.note({
        upstream: candidate.upstream.id,
        model: candidate.model,
        measured: {
          ...(firstAt === undefined ? { answerMs: totalMs } : { streamMs: firstAt - startedAt }),
          ...(outputTokens !== undefined && outputTokens > 0 && { tokensPerSecond: (outputTokens * 1000) / totalMs }),
        },
      });
    },
    once: <T>(request: UpstreamRequest, work: Work<T>): Promise<T> =>
      tryEach(request, async (attempt) => {
        const value = await attempt.within("firstByteMs", work(attempt.candidate, attempt.signal, attempt.span));
        attempt.succeed();
        return value;
      }),
    /** Resolves when the first item arrives. Must be read with `for await`: leaving the loop early abandons the attempt. */
    stream: <T>(request: UpstreamRequest, work: Work<AsyncIterable<T>>): Promise<AsyncIterableIterator<T>> =>
      tryEach(request, async (attempt) => {
        const open = async () => {
          const source = (await work(attempt.candidate, attempt.signal, attempt.span))[Symbol.asyncIterator]();
          return { source, first: await source.next() };
        };
        const { source, first } = await attempt.within("firstByteMs", open());
        if (first.done) throw new UpstreamFailure("unavailable", "a stream without an item");
        attempt.markResponding();
        return streamItems(attempt, first, source, request.log);
      }),
    /** Undefined if this worker has no such upstream, or its provider takes no batches. */
    inBatch: (id: string) => batchUpstreamOf(states.get(id), catalog, clock),
    close: async () => {
      for (const { key } of states.values()) key?.close();
      await Promise.all([ownKeys.close(), ...[...states.values()].map(({ provider }) => provider.close())]);
    },
  };
}

function streamItems<T>(
  attempt: UpstreamAttempt,
  first: IteratorResult<T>,
  source: AsyncIterator<T>,
  log: Logger,
): AsyncIterableIterator<T> {
  let unread: IteratorResult<T> | undefined = first;
  let hasEnded = false;
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      if (hasEnded) return { done: true, value: undefined };
      try {
        attempt.signal.throwIfAborted();
        const item = unread ?? (await attempt.within("silenceMs", source.next()));
        unread = undefined;
        if (item.done) {
          hasEnded = true;
          attempt.succeed();
        }
        return item;
      } catch (error) {
        hasEnded = true;
        const failure = attempt.fail(error);
        if (!(failure instanceof UpstreamFailure)) throw failure;
        logFailure(log, attempt.candidate, failure);
        throw brokenStream(attempt.candidate, failure);
      }
    },
    async return() {
      if (!hasEnded) {
        hasEnded = true;
        attempt.abandon();
        // Errors of the source no longer matter.
        await source.return?.().catch(() => {});
      }
      return { done: true, value: undefined };
    },
  };
}

function withoutCredentials(address: string): string {
  const url = new URL(address);
  return `${url.origin}${url.pathname.replace(/\/$/, "")}`;
}

export type Upstreams = ReturnType<typeof createUpstreams>;
