import type { Format } from "#formats";
import type { Clock } from "#platform/clock";
import { UpstreamFailure } from "../providers/index.ts";
import type { Outcome } from "./breaker.ts";
import { startDeadlines } from "./deadlines.ts";
import type { UpstreamState } from "./upstream.ts";

const maxCooldownMs = 60_000;

/** An upstream that may serve a call, under its own name for the model. */
export interface Candidate {
  readonly upstream: UpstreamState;
  readonly model: string;
  readonly formats: readonly Format[];
}

/** One attempt at an upstream: it holds a slot until it succeeds, fails or is abandoned. */
export function startAttempt(candidate: Candidate, account: string, caller: AbortSignal, clock: Clock) {
  const { upstream, model } = candidate;
  const connection = upstream.connectionBreaker.begin(account);
  const response = upstream.modelBreaker(model).begin(account);
  const { signal, within, abort, close } = startDeadlines(clock, upstream.deadlines, caller);
  let hasEnded = false;
  const end = (outcome: Outcome, connected: Outcome = outcome === "succeeded" ? outcome : "unknown") => {
    if (hasEnded) return;
    hasEnded = true;
    close();
    connection.end(connected);
    response.end(outcome);
    upstream.slots.release();
  };
  // An abort between two items releases the slot and the connection at once.
  signal.addEventListener("abort", () => end(caller.aborted ? "unknown" : "failed"), { once: true });

  return {
    candidate,
    signal,
    within,
    /** The first item has arrived. */
    markResponding(): void {
      connection.markResponding();
      response.markResponding();
    },
    succeed: () => end("succeeded"),
    abandon(): void {
      end("unknown");
      abort(new Error("the stream was not read to its end"));
    },
    /** Returns the error that counts: a deadline or the caller's abort takes precedence over what followed from it. */
    fail(error: unknown): unknown {
      const reason: unknown = signal.aborted ? signal.reason : error;
      if (reason instanceof UpstreamFailure) {
        const { kind, status, unreachable, retryAfterMs } = reason;
        const isUnhealthy = kind === "unavailable" || kind === "timeout";
        if (!isUnhealthy) response.markResponding();
        if (unreachable) end("unknown", "failed");
        else end(isUnhealthy ? "failed" : "unknown", status === undefined ? "unknown" : "succeeded");
        if (retryAfterMs !== undefined)
          upstream.cooldowns.set(model, clock.now() + Math.min(maxCooldownMs, retryAfterMs));
      }
      end("unknown");
      abort(reason);
      return reason;
    },
  };
}

export type UpstreamAttempt = ReturnType<typeof startAttempt>;
