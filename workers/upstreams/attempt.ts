import type { Upstream } from "#catalog";
import type { Format } from "#formats";
import type { Clock } from "#platform/clock";
import { type Provider, UpstreamFailure } from "../providers/index.ts";
import type { Breaker, Outcome } from "./breaker.ts";
import type { Slots } from "./slots.ts";
import { verdict } from "./verdict.ts";
import { type Watch, watch } from "./watch.ts";

const longestCooldownMs = 60_000;

/** One upstream, as long as the process lives. */
export interface UpstreamState {
  readonly id: string;
  readonly provider: Provider;
  readonly slots: Slots;
  /** Of connections, which no request can keep from coming about: failures count whoever calls. */
  readonly connecting: Breaker;
  /** By its own name for the model. */
  readonly breakerOf: (model: string) => Breaker;
  readonly unknownFields: Upstream["unknownFields"];
  readonly deadlines: Upstream["deadlines"];
  /** Until when it wants to be left alone, by its own name for the model. Unix milliseconds. */
  readonly cooldowns: Map<string, number>;
}

/** A upstream under a model's name: one candidate for a call. */
export interface Candidate {
  readonly upstream: UpstreamState;
  readonly slots: Slots;
  readonly model: string;
  readonly formats: readonly Format[];
}

/** One attempt under candidate: it holds a slot until it has succeeded, failed or been left. */
export interface UpstreamAttempt {
  readonly candidate: Candidate;
  readonly signal: AbortSignal;
  readonly within: Watch["within"];
  /** The first item is there. */
  answered(): void;
  succeeded(): void;
  left(): void;
  /** Ends it, and gives the error that counts: a deadline or the caller's leaving before what followed from it. */
  failed(error: unknown): unknown;
}

export function begin(candidate: Candidate, account: string, caller: AbortSignal, clock: Clock): UpstreamAttempt {
  const { upstream, slots, model } = candidate;
  const connecting = upstream.connecting.begin(account);
  const report = upstream.breakerOf(model).begin(account);
  const { signal, within, abort, close } = watch(clock, upstream.deadlines, caller);
  let over = false;
  const end = (outcome: Outcome, connected: Outcome = outcome === "succeeded" ? outcome : "unknown") => {
    if (over) return;
    over = true;
    close();
    connecting.end(connected);
    report.end(outcome);
    slots.release();
  };
  // Also while nobody waits for an item: a leaver's slot and connection are free at once.
  signal.addEventListener("abort", () => end(caller.aborted ? "unknown" : "failed"), { once: true });

  return {
    candidate: candidate,
    signal,
    within,
    answered() {
      connecting.answered();
      report.answered();
    },
    succeeded: () => end("succeeded"),
    left() {
      end("unknown");
      abort(new Error("the reader left"));
    },
    failed(error) {
      const reason: unknown = signal.aborted ? signal.reason : error;
      if (reason instanceof UpstreamFailure) {
        const { kind, status, unreachable } = reason;
        const isFailure = kind === "unavailable" || kind === "timeout";
        if (!isFailure) report.answered();
        if (unreachable) end("unknown", "failed");
        else end(isFailure ? "failed" : "unknown", status === undefined ? "unknown" : "succeeded");
        if (reason.retryAfterMs !== undefined)
          upstream.cooldowns.set(model, clock.now() + Math.min(longestCooldownMs, reason.retryAfterMs));
      }
      end("unknown");
      abort(reason);
      return reason;
    },
  };
}

export function itemsOf<T>(
  call: UpstreamAttempt,
  first: IteratorResult<T>,
  source: AsyncIterator<T>,
  onFailure: (failure: UpstreamFailure) => void,
): AsyncIterableIterator<T> {
  let ready: IteratorResult<T> | undefined = first;
  let over = false;
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      if (over) return { done: true, value: undefined };
      try {
        call.signal.throwIfAborted();
        const step = ready ?? (await call.within("silenceMs", source.next()));
        ready = undefined;
        if (step.done) {
          over = true;
          call.succeeded();
        }
        return step;
      } catch (error) {
        over = true;
        const failure = call.failed(error);
        if (!(failure instanceof UpstreamFailure)) throw failure;
        onFailure(failure);
        throw verdict([failure], false, Number.POSITIVE_INFINITY);
      }
    },
    async return() {
      if (!over) {
        over = true;
        call.left();
        // It is over, whatever the source makes of it.
        await source.return?.().catch(() => {});
      }
      return { done: true, value: undefined };
    },
  };
}
