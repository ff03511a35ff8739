import type { Model } from "#catalog";
import { ServiceError } from "#errors";
import type { Format } from "#formats";
import type { CallTarget } from "#jobs";
import type { Attempt, AttemptOutcome } from "#money";
import type { Clock } from "#platform/clock";
import type { Span } from "#platform/observability/tracing";
import { Aborted, type FailureKind, UpstreamFailure } from "../providers/provider.ts";
import type { Outcome } from "./breaker.ts";
import { startDeadlines } from "./deadlines.ts";
import type { SlotUser } from "./slots.ts";
import type { UpstreamState } from "./upstream.ts";

const maxCooldownMs = 60_000;
/** The text of a failure is for the operator, and part of every record of the worker. */
const maxFailureText = 300;

/** A model that may serve a call, with the limits that the hold covers. */
export type Target = Omit<CallTarget, "model"> & { readonly model: Model };

/** An upstream that may serve a call, under its own name for the model. */
export interface Candidate {
  readonly target: Target;
  readonly upstream: UpstreamState;
  readonly model: string;
  readonly formats: readonly Format[];
  /** The price that we pay, if the catalog has it. */
  readonly cost: Model["upstreams"][number]["cost"];
}

/** Records where a call was sent. It may be read while the call runs. */
export interface AttemptRecord {
  readonly attempts: MadeAttempt[];
  /** The latest candidate. */
  candidate?: Candidate;
  /** The id of the answer, as its caller reads it. */
  answerId?: string;
  /** The reason why the model stopped, as a finish reason of chat. */
  finishReason?: string;
}

export interface MadeAttempt extends Pick<Attempt, "upstream" | "model" | "key" | "status" | "code"> {
  /** Unix milliseconds. */
  readonly startedAt: number;
  /** The time of the first event of a stream. */
  firstAt?: number;
  endedAt?: number;
  /** Unset while the attempt runs, or if it was ended from outside. */
  outcome?: AttemptOutcome;
  status?: number | undefined;
  code?: string | undefined;
}

/** Total duration of all attempts until now. */
export const providerMs = ({ attempts }: AttemptRecord, now: number): number =>
  attempts.reduce((sum, { startedAt, endedAt = now }) => sum + endedAt - startedAt, 0);

/** Starts the spans of attempts, and ends them itself from the recorded attempts. */
export interface AttemptTracer {
  startAttempt(made: MadeAttempt, candidate: Candidate): Span;
}

const outcomes: Partial<Record<FailureKind, AttemptOutcome>> = {
  refused: "refused",
  busy: "busy",
  timeout: "timeout",
};

/** The outcome of an attempt that ended with this error. */
export function outcomeOf(
  reason: unknown,
): Pick<MadeAttempt, "outcome" | "status" | "code"> & { outcome: AttemptOutcome } {
  if (reason instanceof UpstreamFailure) {
    const { kind, status, code } = reason;
    return { outcome: outcomes[kind] ?? "failed", status, code };
  }
  if (reason instanceof ServiceError) return { outcome: reason.status < 500 ? "refused" : "failed", code: reason.code };
  if (!(reason instanceof Aborted)) return { outcome: "failed" };
  return { outcome: reason.cause === "deadline" ? "timeout" : "cancelled" };
}

/** One attempt at an upstream: it holds a slot until it succeeds, fails or is abandoned. */
export function startAttempt(
  candidate: Candidate,
  account: string,
  {
    signal: caller,
    user,
    record,
    trace,
  }: {
    readonly signal: AbortSignal;
    readonly user: SlotUser;
    readonly record: AttemptRecord;
    readonly trace?: AttemptTracer | undefined;
  },
  clock: Clock,
) {
  const { upstream, model } = candidate;
  const { own } = upstream;
  const made: MadeAttempt = {
    upstream: upstream.id,
    model: candidate.target.model.id,
    ...(own && { key: own.id }),
    startedAt: clock.now(),
  };
  const observed = { upstream: upstream.id, model: candidate.target.model.id, isOwn: own !== undefined };
  own?.noteUsed();
  record.attempts.push(made);
  record.candidate = candidate;
  const span = trace?.startAttempt(made, candidate);
  const note = (ending: Pick<MadeAttempt, "outcome" | "status" | "code">) => {
    if (made.outcome === undefined) Object.assign(made, ending, { endedAt: clock.now() });
  };
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
    upstream.slots.release(user);
    const { outcome: noted = outcomeOf(signal.reason).outcome, endedAt = clock.now() } = made;
    upstream.observeAttempts?.ended(observed, noted, endedAt - made.startedAt);
  };
  // An abort between two items releases the slot and the connection at once.
  signal.addEventListener("abort", () => end(caller.aborted ? "unknown" : "failed"), { once: true });

  return {
    candidate,
    signal,
    span,
    within,
    /** The first item has arrived. */
    markResponding(): void {
      made.firstAt = clock.now();
      connection.markResponding();
      response.markResponding();
      upstream.observeAttempts?.firstEvent(observed, made.firstAt - made.startedAt);
    },
    succeed(): void {
      note({ outcome: "succeeded" });
      end("succeeded");
    },
    abandon(): void {
      note({ outcome: "cancelled" });
      end("unknown");
      abort(new Error("the stream was not read to its end"));
    },
    /** Returns the error that counts: a deadline or the caller's abort takes precedence over what followed from it. */
    fail(error: unknown): unknown {
      const ending: unknown = signal.aborted ? signal.reason : error;
      const reason = own && ending instanceof UpstreamFailure ? own.withoutCredential(ending) : ending;
      note(outcomeOf(reason));
      if (reason instanceof UpstreamFailure) {
        own?.noteRejected(reason);
        upstream.key?.noteFailure(reason);
        const { kind, status, unreachable, retryAfterMs } = reason;
        if (kind !== "refused")
          upstream.lastFailure = { at: clock.now(), message: reason.message.slice(0, maxFailureText) };
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
