import { noCapacity, refusedByProvider, ServiceError, tooManyTokens, upstreamError, upstreamTimeout } from "#errors";
import type { PaidCall } from "#jobs";
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
import { isOfRequest, isRejected, ownKeyError } from "./own-key.ts";
import { type SlotUser, takeFirstSlot } from "./slots.ts";

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
  readonly payload?: Pick<PaidCall, "batch">;
  readonly log: Logger;
  readonly trace?: AttemptTracer | undefined;
  /** Excludes upstreams whose provider lacks what the call needs. */
  readonly supports?: (provider: Provider) => boolean;
}

/** An own key that no call can use. The call fails once it would be tried, whatever the mode of the key. */
export interface Unopened {
  readonly target: Target;
  readonly refusal: ServiceError;
}

const isCandidate = (option: Candidate | Unopened): option is Candidate => !("refusal" in option);

interface Failed {
  readonly candidate: Candidate;
  readonly failure: UpstreamFailure | ServiceError;
}

/**
 * Tries the candidates in order until `run` resolves for one; whoever gets its result ends the attempt. A refused request is
 * not tried at another upstream of its model, but at the next model. If a provider does not accept an own key of mode `only`,
 * only own keys are tried for the model after it.
 */
export async function failover<R>(
  request: UpstreamRequest,
  options: readonly (Candidate | Unopened)[],
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
      upstream.key?.blockedForMs() ?? 0,
    );
  const isReady = (candidate: Candidate) => blockedForMs(candidate) <= 0;
  const user: SlotUser = request.payload?.batch ? "line" : "call";
  const candidates = options.filter(isCandidate);
  const untried = new Set(options);
  const failed: Failed[] = [];
  /** Models for which the operator's keys must not be used. */
  const closed = new Set<Target>();
  const giveUp = (target: Target) => {
    for (const each of untried) if (each.target === target) untried.delete(each);
  };
  const fail = (candidate: Candidate, failure: UpstreamFailure | ServiceError) => {
    failed.push({ candidate, failure });
    const { target, upstream } = candidate;
    if (upstream.own?.mode !== "only" || failure instanceof ServiceError || !isRejected(failure)) return;
    closed.add(target);
    for (const each of untried)
      if (each.target === target && isCandidate(each) && !each.upstream.own) untried.delete(each);
  };
  for (const candidate of candidates) {
    const rejection = candidate.upstream.own?.rejection();
    if (!rejection || !untried.delete(candidate)) continue;
    fail(candidate, rejection);
  }
  for (;;) {
    const waiting = failed.length > 0 && disconnected ? AbortSignal.any([signal, disconnected]) : signal;
    waiting.throwIfAborted();
    if (record.attempts.length >= maxAttempts) untried.clear();
    const ready: Candidate[] = [];
    for (const option of untried) {
      if (!isCandidate(option)) {
        if (ready.length === 0) throw option.refusal;
        break;
      }
      if (isReady(option)) ready.push(option);
    }
    if (ready.length === 0) break;
    // A call waits for a slot of its own keys before it pays for the operator's.
    const shared = ready.findIndex(({ upstream }) => !upstream.own);
    const candidate = await takeFirstSlot(shared > 0 ? ready.slice(0, shared) : ready, user, waiting);
    // While the call waited for a slot, it may have been aborted or the breaker may have opened.
    if (waiting.aborted || !isReady(candidate)) {
      candidate.upstream.slots.release(user);
      continue;
    }
    untried.delete(candidate);
    const attempt = startAttempt(candidate, account, { ...request, user }, clock);
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
      fail(candidate, failure);
      const isRefused = isFailure && (candidate.upstream.own ? isOfRequest(failure) : failure.kind === "refused");
      if (isOfModel || (isRefused && !failure.isHostLimit)) giveUp(target);
    }
  }
  const errors = targets.flatMap((target) => {
    const ofTarget = failed.filter(({ candidate }) => candidate.target === target);
    const served = candidates.filter((each) => each.target === target);
    if (ofTarget.length === 0 && !served.some((each) => untried.has(each))) return [];
    const thrown = ofTarget.map(({ failure }) => failure).find((failure) => failure instanceof ServiceError);
    if (thrown) return [thrown];
    const isShared = ({ upstream }: Candidate) => !upstream.own && !closed.has(target);
    const failures = ofTarget.flatMap(({ candidate, failure }) =>
      failure instanceof UpstreamFailure ? [{ candidate, failure }] : [],
    );
    const refused = failures.find(({ candidate, failure }) => candidate.upstream.own && isOfRequest(failure));
    if (refused) return [refusedByProvider(refused.failure.code, refused.failure.param, refusalText(refused.failure))];
    const shared = served.filter(isShared);
    if (shared.length === 0)
      return [
        ownError(
          failures,
          served.filter((each) => untried.has(each)),
        ),
      ];
    const waitMs = Math.min(...shared.map(blockedForMs).filter((ms) => ms > 0));
    const ofShared = failures.filter(({ candidate }) => isShared(candidate)).map(({ failure }) => failure);
    return [
      failedCall(
        ofShared,
        shared.some((each) => untried.has(each)),
        waitMs,
      ),
    ];
  });

  function ownError(
    failures: readonly { candidate: Candidate; failure: UpstreamFailure }[],
    left: readonly Candidate[],
  ) {
    const ofOwn = failures.flatMap(({ candidate: { upstream }, failure }) =>
      upstream.own ? [{ own: upstream.own, failure }] : [],
    );
    const cooling = left.flatMap(({ upstream, model }) => {
      const waitMs = (upstream.cooldowns.get(model) ?? 0) - clock.now();
      return upstream.own && waitMs > 0 ? [{ own: upstream.own, waitMs }] : [];
    });
    return ownKeyError(ofOwn, cooling, left.length > 0);
  }

  // Prefers an error that a retry may fix over a refusal, else throws the error of the first model.
  throw errors.find(({ status }) => status >= 500 || status === 429) ?? errors[0] ?? failedCall([]);
}

const refusalText = ({ kind, message }: UpstreamFailure): string =>
  kind === "refused" ? message : message.replace(/^status 404(: |$)/, "") || "The provider has no such model.";

/** The error of a stream that broke off. */
export function brokenStream({ upstream: { own } }: Candidate, failure: UpstreamFailure): ServiceError {
  return own && !isOfRequest(failure) ? ownKeyError([{ own, failure }], [], false) : failedCall([failure]);
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
