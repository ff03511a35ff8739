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
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { Span } from "#platform/observability/tracing";
import type { Environment } from "#platform/process/secret-files";
import type { Counting } from "../counting/index.ts";
import { type Provider, UpstreamFailure } from "../providers/index.ts";
import type { AttemptRecord, Candidate, Target, UpstreamAttempt } from "./attempt.ts";
import { failedCall, failover, logFailure, type UpstreamRequest } from "./failover.ts";
import { createSpeeds } from "./speeds.ts";
import { type AttemptObserver, openUpstream, type UpstreamState } from "./upstream.ts";

export { type AttemptRecord, type Candidate, providerMs, type Target } from "./attempt.ts";
export type { AttemptObserver } from "./upstream.ts";

/** Calls one upstream. Called again for the next one after a failure. */
type Work<T> = (candidate: Candidate, signal: AbortSignal, span: Span | undefined) => Promise<T>;

export function createUpstreams(deps: {
  catalog: Pick<Catalog, "upstreams" | "list">;
  env: Environment;
  clock: Clock;
  counting: Counting;
  observeAttempts?: AttemptObserver;
}) {
  const { catalog, clock } = deps;
  const states = new Map<string, UpstreamState>();
  for (const upstream of catalog.upstreams.values()) {
    const state = openUpstream(upstream, deps.env, deps);
    if (state) states.set(upstream.id, state);
  }

  const speeds = createSpeeds(clock);

  const candidatesOf = (target: Target, supports: (provider: Provider) => boolean): Candidate[] => {
    const { upstreams: order } = target;
    const served = target.model.upstreams;
    const chosen = order ? order.flatMap((id) => served.filter(({ upstream }) => upstream === id)) : served;
    return chosen.flatMap(({ upstream: id, model, formats, cost }) => {
      const upstream = states.get(id);
      return upstream && supports(upstream.provider)
        ? [{ target, upstream, model, formats: formats ?? upstream.provider.speaks, cost }]
        : [];
    });
  };
  const candidatesFor = ({ targets, supports = () => true }: UpstreamRequest): Candidate[] =>
    targets.flatMap((target) => candidatesOf(target, supports));

  const modelsByUpstream = Map.groupBy(
    catalog.list().flatMap((model) => model.upstreams),
    ({ upstream }) => upstream,
  );
  const isOpen = ({ id, connectionBreaker, modelBreaker }: UpstreamState) => {
    if (connectionBreaker.blockedForMs() > 0) return true;
    const models = modelsByUpstream.get(id) ?? [];
    return models.length > 0 && models.every(({ model }) => modelBreaker(model).blockedForMs() > 0);
  };

  return {
    /** `open` means that connections fail, or that every model that it serves fails for everyone. */
    states: () =>
      Object.fromEntries(
        [...catalog.upstreams.keys()].map((id) => {
          const upstream = states.get(id);
          return [id, upstream === undefined ? "no key" : isOpen(upstream) ? "open" : "ready"] as const;
        }),
      ),
    /** The attempts that run, and the calls that wait for a slot, by upstream. */
    loads: () => [...states.values()].map(({ id, slots }) => ({ upstream: id, ...slots.load() })),
    /** Recent speeds of the upstreams, for the worker's record. */
    speeds: () => speeds.recent(),
    /** Records the speed of the upstream that answered. */
    noteSpeed({ candidate, attempts }: AttemptRecord, outputTokens: number | undefined): void {
      const { startedAt, firstAt, endedAt } = attempts.at(-1) ?? {};
      if (!candidate || startedAt === undefined || endedAt === undefined) return;
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
      failover(request, candidatesFor(request), clock, async (attempt) => {
        const value = await attempt.within("firstByteMs", work(attempt.candidate, attempt.signal, attempt.span));
        attempt.succeed();
        return value;
      }),
    /** Resolves when the first item arrives. Must be read with `for await`: leaving the loop early abandons the attempt. */
    stream: <T>(request: UpstreamRequest, work: Work<AsyncIterable<T>>): Promise<AsyncIterableIterator<T>> =>
      failover(request, candidatesFor(request), clock, async (attempt) => {
        const open = async () => {
          const source = (await work(attempt.candidate, attempt.signal, attempt.span))[Symbol.asyncIterator]();
          return { source, first: await source.next() };
        };
        const { source, first } = await attempt.within("firstByteMs", open());
        if (first.done) throw new UpstreamFailure("unavailable", "a stream without an item");
        attempt.markResponding();
        return streamItems(attempt, first, source, request.log);
      }),
    close: async () => {
      await Promise.all([...states.values()].map(({ provider }) => provider.close()));
    },
  };
}

async function* streamItems<T>(
  attempt: UpstreamAttempt,
  first: IteratorResult<T>,
  source: AsyncIterator<T>,
  log: Logger,
): AsyncGenerator<T, void, undefined> {
  let hasEnded = false;
  try {
    attempt.signal.throwIfAborted();
    for (let item = first; !item.done; item = await attempt.within("silenceMs", source.next())) {
      yield item.value;
      attempt.signal.throwIfAborted();
    }
    hasEnded = true;
    attempt.succeed();
  } catch (error) {
    hasEnded = true;
    const failure = attempt.fail(error);
    if (!(failure instanceof UpstreamFailure)) throw failure;
    logFailure(log, attempt.candidate, failure);
    throw failedCall([failure]);
  } finally {
    if (!hasEnded) {
      attempt.abandon();
      // Errors of the source no longer matter.
      await source.return?.().catch(() => {});
    }
  }
}

export type Upstreams = ReturnType<typeof createUpstreams>;
