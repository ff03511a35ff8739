import type { Model, Usage } from "#catalog";
import { jobCancelled } from "#detached-calls";
import { noCapacity, type ServiceError, toServiceError, upstreamTimeout } from "#errors";
import type { PaidCall } from "#jobs";
import { feeOf, type ReleaseReason } from "#money";
import { Aborted } from "../running.ts";
import type { AttemptRecord } from "../upstreams/index.ts";
import type { Answer, CountedUsage, RunCallDeps } from "./context.ts";

/** Fields that the ledger records for every call, however it ended. Times are Unix milliseconds. */
export const ledgerFields = (
  payload: PaidCall,
  { candidate, attempts, answerId, finishReason }: AttemptRecord,
  times: { readonly startedAt: number; readonly endedAt: number; readonly firstTokenAt?: number | undefined },
) => ({
  account: payload.account,
  requestId: payload.requestId,
  key: payload.keyId,
  endpoint: payload.endpoint,
  answerId,
  streamed: payload.stream,
  finishReason,
  model: candidate?.target.model.id ?? payload.model,
  batch: payload.batch?.id,
  sessionId: payload.sessionId,
  user: payload.user,
  tags: payload.tags,
  heldNanoUsd: BigInt(payload.held),
  lease: payload.lease,
  ...(payload.replyNumber !== undefined && { reply: { instance: payload.replyTo, number: payload.replyNumber } }),
  buybackToken: payload.buybackToken,
  upstream: candidate?.upstream.id,
  attempts: attempts.map(({ startedAt, endedAt = times.endedAt, outcome = "cancelled", ...made }) => ({
    upstream: made.upstream,
    model: made.model,
    key: made.key,
    startedMs: startedAt - payload.acceptedAt,
    durationMs: endedAt - startedAt,
    outcome,
    status: made.status,
    code: made.code,
  })),
  queueMs: times.startedAt - payload.acceptedAt,
  firstTokenMs: times.firstTokenAt === undefined ? undefined : times.firstTokenAt - payload.acceptedAt,
  totalMs: times.endedAt - payload.acceptedAt,
});

/** The billed usage, at the prices of the model that answered, or for the fee if an own key of the account was used. */
export function priced(
  { catalog, byokFeeBps }: Pick<RunCallDeps, "catalog" | "byokFeeBps">,
  { tier, batch }: Pick<PaidCall, "tier" | "batch">,
  { candidate }: AttemptRecord,
  model: Model,
  { usage, estimated, input }: CountedUsage & Pick<Answer, "input">,
) {
  const billed = catalog.billed(model, usage, input);
  const full = catalog.cost(model, billed, tier, input);
  const listNanoUsd = batch ? catalog.inBatch(model, full, batch.discountBps) : full;
  const own = candidate?.upstream.own;
  if (!own) return { usage: billed, estimated, costNanoUsd: listNanoUsd };
  const costNanoUsd = feeOf(listNanoUsd, byokFeeBps);
  return { usage: billed, estimated, costNanoUsd, byok: { key: own.id, listNanoUsd } };
}

/** The cost of the usage to us, if it is known. */
export function upstreamCostOf({ candidate }: AttemptRecord, usage: Usage) {
  if (candidate?.upstream.own) return { upstreamCostNanoUsd: 0n };
  const isKnown = candidate?.cost && Object.values(usage).some((count) => count > 0);
  return isKnown ? { upstreamCostNanoUsd: candidate.cost?.of(usage) } : {};
}

/**
 * The amount that the prompt cache took off the cost of a call: the cost of the same usage without cached tokens, less its
 * own. It is recorded, because prices may change later.
 */
export function savedOf(
  deps: Pick<RunCallDeps, "catalog" | "byokFeeBps">,
  payload: Pick<PaidCall, "tier" | "batch">,
  record: AttemptRecord,
  model: Model | undefined,
  usage: Usage,
): { readonly savedNanoUsd?: bigint } {
  const { input = 0, cached_input = 0, cache_write = 0, cache_write_1h = 0, ...others } = usage;
  const inCache = cached_input + cache_write + cache_write_1h;
  if (!model || inCache === 0) return {};
  const costOf = (each: Usage) => priced(deps, payload, record, model, { usage: each, estimated: false }).costNanoUsd;
  return { savedNanoUsd: costOf({ ...others, input: input + inCache }) - costOf(usage) };
}

type Failure = ReleaseReason & { readonly answer: ServiceError };

/** The status and error of a failure, for the ledger and for the caller. */
export function failureOf(reason: unknown, { detached }: Pick<PaidCall, "detached">): Failure {
  const failed = (answer: ServiceError): Failure => ({ status: "failed", error: answer.code, answer });
  const cause = reason instanceof Aborted ? reason.cause : undefined;
  // No connection ends a job, so its caller has cancelled it.
  if (cause === "disconnected" && detached) return { status: "cancelled", answer: jobCancelled() };
  switch (cause) {
    case "disconnected":
    case "ended":
    case "gone":
      // An API instance whose caller disconnected still has the call open, and releases its slot and tokens when it learns
      // of the end. An instance that seemed dead may only have stalled.
      return { status: "cancelled", answer: noCapacity("Contact was lost; repeat the call.", 1) };
    case "lost":
      return failed(noCapacity("The worker lost this call; nothing was charged. Repeat it.", 1));
    case "deadline":
      return failed(upstreamTimeout("The call ran out of time.", { shouldRetry: false }));
    case "shutdown":
      return failed(noCapacity("The worker is shutting down; repeat the call.", 1));
    case undefined:
      return failed(toServiceError(reason));
  }
}
