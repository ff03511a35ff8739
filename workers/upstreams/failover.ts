import { noCapacity, refusedByProvider, ServiceError, tooManyTokens, upstreamError, upstreamTimeout } from "#errors";
import { isPaymentAccount } from "#money";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { type Provider, UpstreamFailure } from "../providers/index.ts";
import {
  type AttemptRecord,
  type AttemptTracer,
  type Candidate,
  startAttempt,
  type Target,
  type UpstreamAttempt,
} from "./attempt.ts";
import { takeFirstSlot } from "./slots.ts";

/** Providers may do unpaid work on each attempt that fails. */
const maxAttempts = 8;

export interface UpstreamRequest {
  /** The targets, in the order in which they are tried. */
  readonly targets: readonly Target[];
  /** Breakers count failures by account. */
  readonly account: string;
  readonly signal: AbortSignal;
  /** Once it aborts, a failure is not followed by another attempt. */
  readonly disconnected?: AbortSignal;
  readonly record: AttemptRecord;
  readonly log: Logger;
  readonly trace?: AttemptTracer | undefined;
  /** Excludes upstreams whose provider lacks what the call needs. */
  readonly supports?: (provider: Provider) => boolean;
}

/**
 * Tries the candidates in order until `run` resolves for one; whoever gets its result ends the attempt. A refused request is
 * not tried at another upstream of its model, but at the next model.
 */
export async function failover<R>(
  request: UpstreamRequest,
  candidates: readonly Candidate[],
  clock: Clock,
  run: (attempt: UpstreamAttempt) => Promise<R>,
): Promise<R> {
  const { signal, disconnected, record, log, targets } = request;
  // Each x402 payment opens an account, so accounts do not tell those callers apart.
  const account = isPaymentAccount(request.account) ? "x402" : request.account;
  const blockedForMs = ({ upstream, model }: Candidate) =>
    Math.max(
      upstream.connectionBreaker.blockedForMs(account),
      upstream.modelBreaker(model).blockedForMs(account),
      (upstream.cooldowns.get(model) ?? 0) - clock.now(),
    );
  const isReady = (candidate: Candidate) => blockedForMs(candidate) <= 0;
  const untried = new Set(candidates);
  const failed = new Map<Target, (UpstreamFailure | ServiceError)[]>();
  const giveUp = (target: Target) => {
    for (const each of untried) if (each.target === target) untried.delete(each);
  };
  for (;;) {
    const waiting = failed.size > 0 && disconnected ? AbortSignal.any([signal, disconnected]) : signal;
    waiting.throwIfAborted();
    if (record.attempts.length >= maxAttempts) untried.clear();
    const ready = [...untried].filter(isReady);
    if (ready.length === 0) break;
    const candidate = await takeFirstSlot(ready, waiting);
    // While the call waited for a slot, it may have been aborted or the breaker may have opened.
    if (waiting.aborted || !isReady(candidate)) {
      candidate.upstream.slots.release();
      continue;
    }
    untried.delete(candidate);
    const attempt = startAttempt(candidate, account, request, clock);
    try {
      return await run(attempt);
    } catch (error) {
      const failure = attempt.fail(error);
      const { target } = candidate;
      const isFailure = failure instanceof UpstreamFailure;
      // The request cannot be converted for this model, or its answer cannot be used.
      const isOfModel = failure instanceof ServiceError && targets.length > 1;
      if (!isFailure && !isOfModel) throw failure;
      if (isFailure) logFailure(log, candidate, failure);
      failed.set(target, [...(failed.get(target) ?? []), failure]);
      if (isOfModel || (isFailure && failure.kind === "refused" && !failure.isHostLimit)) giveUp(target);
    }
  }
  const errors = targets.flatMap((target) => {
    const failures = failed.get(target) ?? [];
    const own = candidates.filter((each) => each.target === target);
    const hasUntried = own.some((each) => untried.has(each));
    if (failures.length === 0 && !hasUntried) return [];
    const thrown = failures.find((failure) => failure instanceof ServiceError);
    const waitMs = Math.min(...own.map(blockedForMs).filter((ms) => ms > 0));
    return [
      thrown ??
        failedCall(
          failures.filter((each) => each instanceof UpstreamFailure),
          hasUntried,
          waitMs,
        ),
    ];
  });
  // Prefers an error that a retry may fix over a refusal, else throws the error of the first model.
  throw errors.find(({ status }) => status >= 500 || status === 429) ?? errors[0] ?? failedCall([]);
}

/** The error for the caller. It names no upstream; only the text of a refused request passes through. */
export function failedCall(
  failures: readonly UpstreamFailure[],
  hasUntried = false,
  waitMs = Number.POSITIVE_INFINITY,
): ServiceError {
  const refusals = failures.filter(({ kind }) => kind === "refused");
  const busy = failures.filter(({ kind }) => kind === "busy");
  // A host's own limit is no answer while another host may take the call soon.
  const mayBeTaken = hasUntried || busy.length > 0;
  const refused = refusals.find(({ isHostLimit }) => !isHostLimit) ?? (mayBeTaken ? undefined : refusals[0]);
  if (refused) return refusedByProvider(refused.code, refused.param, refused.message);
  if (!hasUntried && busy.length > 0 && busy.every(({ status }) => status === 413)) return tooManyTokens();
  if (hasUntried || failures.length === 0 || busy.length > 0) {
    const seconds = Number.isFinite(waitMs) ? Math.min(60, waitMs / 1000) : undefined;
    return noCapacity("No capacity for this model right now.", seconds, failures.at(-1));
  }
  if (failures.every(({ kind }) => kind === "timeout")) return upstreamTimeout("The upstream did not answer in time.");
  return upstreamError("The upstream failed.", failures.at(-1));
}

export function logFailure(log: Logger, { upstream, model }: Candidate, failure: UpstreamFailure): void {
  const { kind, status, message } = failure;
  // A refusal may quote the prompt.
  const err = kind === "refused" ? undefined : message;
  log.warn({ upstream: upstream.id, upstreamModel: model, kind, status, err }, "upstream failed");
}
