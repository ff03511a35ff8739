import type { Catalog, Model, Tier, Usage } from "#catalog";
import { noCapacity, type ServiceError, toServiceError, upstreamTimeout } from "#errors";
import type { PaidCall } from "#jobs";
import type { ReleaseReason } from "#money";
import { Aborted } from "../running.ts";
import type { AttemptRecord } from "../upstreams/index.ts";
import type { Answer, CountedUsage } from "./context.ts";

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
  heldNanoUsd: BigInt(payload.held),
  lease: payload.lease,
  ...(payload.replyNumber !== undefined && { reply: { instance: payload.replyTo, number: payload.replyNumber } }),
  buybackToken: payload.buybackToken,
  upstream: candidate?.upstream.id,
  attempts: attempts.map(({ startedAt, endedAt = times.endedAt, outcome = "cancelled", ...made }) => ({
    upstream: made.upstream,
    model: made.model,
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

/** The billed usage, at the prices of the model that answered. */
export function priced(catalog: Catalog, tier: Tier, model: Model, counted: CountedUsage & Pick<Answer, "input">) {
  const { usage, estimated, input } = counted;
  const billed = catalog.billed(model, usage, input);
  return { usage: billed, estimated, costNanoUsd: catalog.cost(model, billed, tier, input) };
}

/** The cost of the usage to us, if it is known. */
export function upstreamCostOf({ candidate }: AttemptRecord, usage: Usage) {
  const isKnown = candidate?.cost && Object.values(usage).some((count) => count > 0);
  return isKnown ? { upstreamCostNanoUsd: candidate.cost?.of(usage) } : {};
}

type Failure = ReleaseReason & { readonly answer: ServiceError };

/** The status and error of a failure, for the ledger and for the caller. */
export function failureOf(reason: unknown): Failure {
  const failed = (answer: ServiceError): Failure => ({ status: "failed", error: answer.code, answer });
  const cause = reason instanceof Aborted ? reason.cause : undefined;
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
