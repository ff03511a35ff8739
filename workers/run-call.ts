import type { Catalog } from "#catalog";
import type { StoredError } from "#detached-calls";
import { noCapacity, ServiceError } from "#errors";
import type { Files } from "#files";
import { withoutRoutingFields } from "#formats";
import type { PaidCall } from "#jobs";
import { archivableMs, type Capture, type Captured, capturableMs } from "#money";
import { resultWithin } from "#platform/clock";
import { nextTurnIfLarge } from "#platform/concurrency/next-turn";
import { rhythm } from "#platform/concurrency/rhythm";
import { completionTokens, promptTokens } from "./conversion/index.ts";
import { openBackgroundReply } from "./run-call/background-reply.ts";
import { failureOf, ledgerFields, priced, savedOf, upstreamCostOf } from "./run-call/capture.ts";
import {
  type CountedUsage,
  type Delivery,
  FailedWork,
  failureReason,
  type RunCallDeps,
  type Work,
} from "./run-call/context.ts";
import {
  type Earlier,
  endDetached,
  findEarlier,
  runsInBackground,
  storeAnswer,
  storeError,
  storeEvents,
  storesAnswer,
} from "./run-call/stored-answer.ts";
import { isHandedOver } from "./running.ts";
import type { DeliveryTrace } from "./tracing/call-trace.ts";
import { type AttemptRecord, providerMs, type Target } from "./upstreams/index.ts";

/** The delivery ends without capturing a cost; the next one continues the provider's job. */
export class HandedOver extends Error {
  override readonly name = "HandedOver";
}

/** A caller waits this long for the rest of its hold to be returned. */
const settleMs = 1_000;

/**
 * One delivery of a paid call: begin, run the work, capture the cost, settle, notify the caller. In every case at most one
 * delivery starts the work, and the cost is captured once. Resolving acknowledges the job. A later delivery only ends what
 * an earlier one began: it sends the stored answer, or continues the provider's job. Throws `HandedOver` to be delivered
 * again.
 */
export async function runCall(deps: RunCallDeps, payload: PaidCall, delivery: Delivery, work: Work): Promise<void> {
  const { money, clock } = deps;
  const { requestId, account } = payload;
  const earlier = await findEarlier(deps, payload, delivery);
  if (!earlier) return endWithoutRunning(deps, payload, workerDied(), delivery.trace);

  const call = begin(deps, payload, earlier);
  try {
    if (delivery.isShared) await call.cancellationChecked;
    const ending = await runWork(deps, payload, { ...call, trace: delivery.trace }, earlier, work);
    const { status, usage } = ending.capture;
    // A free call needs no capture: it costs nothing, however often it ends.
    const capturing = payload.isFree ? undefined : delivery.trace?.call?.capturesCost();
    const captured = payload.isFree
      ? undefined
      : await capture(deps, payload, { ...ending.capture, until: capturableUntil(payload) });
    capturing?.end();
    const costNanoUsd = captured?.entry.costNanoUsd ?? 0n;
    delivery.trace?.call?.endAttempts(usage);
    delivery.trace?.span.set({ "inference.status": status, "inference.cost_nanousd": Number(costNanoUsd) });
    const isStored = ending.isStored && captured?.entry.request?.status === "succeeded";
    const settling =
      captured && payload.lease === undefined
        ? money.settle({ account, requestId, heldNanoUsd: BigInt(payload.held), costNanoUsd })
        : undefined;
    // The caller's next call may need what this one held.
    if (settling) await resultWithin(clock, settleMs, () => settling);
    if (isAwaited(payload)) {
      if (!captured || captured.won || isStored) await ending.notify(costNanoUsd);
      else await notifyCaptured(deps, payload, costNanoUsd, endedElsewhere());
    }
    await settling;
    // Last, because no later delivery does anything for a job that has ended.
    if (captured) await endDetached(deps, payload, captured.entry);
    // The readers of a response in the background read its end from the job.
    if (runsInBackground(payload)) await ending.notify(costNanoUsd);
    await captured?.journaled;
  } finally {
    call.end();
  }
}

/** A call that took this long can wait for the beat, so that its capture is written with those of others. */
const patientMs = 1_000;

/**
 * A JSON answer leaves before its capture is journaled, unless it is stored or the call has its own hold (docs/adr/0042). The
 * caller of a stream has most of it by now.
 */
async function capture(
  { money }: RunCallDeps,
  payload: PaidCall,
  call: Capture,
): Promise<Captured & { readonly journaled?: Promise<void> }> {
  if (payload.lease !== undefined && call.totalMs - (call.queueMs ?? 0) > patientMs) await rhythm.next();
  const isEarly = payload.lease !== undefined && !payload.stream && !storesAnswer(payload);
  return isEarly ? money.captureEarly(call) : money.capture(call);
}

function begin({ running, cancellations, clock, log }: RunCallDeps, payload: PaidCall, earlier: Earlier) {
  const { requestId, replyTo, detached, batch } = payload;
  // A job and a line of a batch may wait in the queue for most of their time.
  const { runMs = Number.POSITIVE_INFINITY } = detached ?? batch ?? {};
  const deadlineAt = Math.min(payload.deadlineAt, clock.now() + runMs);
  // Watch before checking, so that no cancellation between the two is lost.
  const call = running.begin({
    requestId,
    deadlineAt,
    cancelAt: detached?.cancelAt,
    replyTo: storesAnswer(payload) ? undefined : replyTo,
  });
  const record: AttemptRecord = { attempts: [] };
  // A provider that has begun must be paid, so its work is finished. Before that, or if the call is free, stop.
  call.disconnected.addEventListener("abort", () => {
    const hasBegun = record.attempts.length > 0 || earlier.job !== undefined;
    if (!hasBegun || payload.held === "0") call.abort("disconnected");
  });
  // There is rarely one: a waiting job is removed from the queue unless it also carries other calls.
  const cancellationChecked = cancellations.notice(requestId, payload.acceptedAt).then(
    (notice) => (notice === "cancelled" ? call.abort("ended") : notice && call.disconnect()),
    (error: Error) => log.warn({ err: error.message, requestId }, "could not check whether the call was cancelled"),
  );
  return { ...call, record, cancellationChecked };
}

/** The end of a delivery: the cost to capture, and how the caller is notified afterwards. */
interface Ending {
  readonly capture: Capture;
  /** The answer is stored: it is sent even if the delivery that captured the cost died before sending it. */
  readonly isStored?: boolean;
  notify(costNanoUsd: bigint): Promise<unknown>;
}

async function runWork(
  deps: RunCallDeps,
  payload: PaidCall,
  call: ReturnType<typeof begin> & Pick<Delivery, "trace">,
  earlier: Earlier,
  work: Work,
): Promise<Ending> {
  const { catalog, replies, clock } = deps;
  const { requestId, account, replyTo } = payload;
  const heldNanoUsd = BigInt(payload.held);
  const { signal, record, trace } = call;
  const log = deps.log.child({ requestId, ...trace?.ids });
  const onGone = () => {
    if (!storesAnswer(payload)) call.abort("gone");
  };
  if (!storesAnswer(payload) && !(await replies.instanceResponds(replyTo))) onGone();
  if (clock.now() >= payload.deadlineAt) call.abort("deadline");
  const { reply, events } = runsInBackground(payload)
    ? openBackgroundReply(deps, payload, earlier)
    : { reply: replies.open(replyTo, requestId, onGone), events: undefined };
  call.replies(reply);
  const startedAt = clock.now();
  const fields = () =>
    ledgerFields(payload, record, { startedAt, endedAt: clock.now(), firstTokenAt: reply.firstWriteAt() });
  const targets = targetsOf(catalog, payload);
  const answering = () => record.candidate?.target.model ?? targets[0]?.model;
  let isResumable = earlier.job !== undefined;

  async function answer() {
    const model = targets[0]?.model;
    if (!model) throw noCapacity(`This worker does not know the model '${payload.model}'.`);
    const body = await bodyOf(deps.files, payload, signal);
    await nextTurnIfLarge(body.length);
    const request = withoutRoutingFields(JSON.parse(body));
    await nextTurnIfLarge(body.length);
    trace?.call?.asks(request);
    const chargeOf = (counted: CountedUsage) => {
      const { costNanoUsd } = priced(deps, payload, record, answering() ?? model, counted);
      return costNanoUsd < heldNanoUsd ? costNanoUsd : heldNanoUsd;
    };
    const own = {
      payload,
      account,
      model,
      targets,
      request,
      reply,
      chargeOf,
      job: earlier.job,
      log,
      trace: trace?.call,
    };
    const context = { ...deps, ...call, ...own };
    const answered = await work(context);
    isResumable ||= answered.isResumable ?? false;
    const { text, headers, usage, estimated, responseStatus } = answered;
    // A count has no usage, and a continued provider job was observed only in part.
    if (Object.keys(usage).length > 0 && !earlier.job)
      deps.upstreams.noteSpeed(record, estimated ? undefined : completionTokens(usage));
    const answerer = answering() ?? model;
    const charged = priced(deps, payload, record, answerer, answered);
    const known = {
      ...(payload.fallbacks && { model: answerer.id }),
      ...(responseStatus !== undefined && { responseStatus }),
      ...(headers && { headers }),
    };
    await storeEvents(deps, payload, events, signal);
    return storeAnswer(deps, payload, { text, ...charged, ...known }, signal);
  }

  try {
    signal.throwIfAborted();
    const { text, headers, responseStatus: _, ...charged } = earlier.answer ?? (await answer());
    if (headers) reply.announce(headers);
    const tokens = totalTokens(charged);
    const captured = { ...fields(), status: "succeeded", ...charged } as const;
    return {
      capture: {
        ...captured,
        ...upstreamCostOf(record, charged.usage),
        ...savedOf(deps, payload, record, catalog.find(captured.model), charged.usage),
      },
      isStored: storesAnswer(payload),
      // The text of a line is stored, and nobody waits for it.
      notify: (cost) =>
        reply.final(payload.batch ? "" : text, {
          cost: String(cost),
          tokens,
          providerMs: providerMs(record, clock.now()),
          ...(payload.format && completionTokens(charged.usage) === 0 && { isEmpty: true }),
        }),
    };
  } catch (thrown) {
    if (thrown instanceof HandedOver) throw thrown;
    const { cause, details } = thrown instanceof FailedWork ? thrown : new FailedWork(failureReason(signal, thrown));
    if ((isResumable || details.isResumable) && isHandedOver(signal))
      throw new HandedOver("the provider's job goes on");
    const { status, error, answer } = failureOf(cause, payload);
    markFailed(trace, answer);
    if (answer.code === "internal_error") log.error({ err: cause }, "a call failed with an unexpected error");
    else {
      const { candidate, attempts } = record;
      const where = { upstream: candidate?.upstream.id, attempts: attempts.length };
      log.info({ code: answer.code, ...reasonToLog(answer), account, ...where }, "a call failed");
    }
    const { counted } = details;
    await storeEvents(deps, payload, events, signal);
    await storeError(deps, payload, { fields: answer.fields(), status }, details.output);
    const model = answering();
    const charged =
      model && counted
        ? priced(deps, payload, record, model, counted)
        : { usage: {}, estimated: false, costNanoUsd: 0n };
    const closing = details.closing?.(answer);
    const outcome = { tokens: counted ? totalTokens(counted) : 0, ...(closing && { ending: closing }) };
    return {
      capture: {
        ...fields(),
        status,
        error,
        ...charged,
        ...upstreamCostOf(record, charged.usage),
        ...savedOf(deps, payload, record, model, charged.usage),
      },
      notify: (cost) =>
        reply.error(answer, { ...outcome, cost: String(cost), providerMs: providerMs(record, clock.now()) }),
    };
  }
}

/** The models of the call that this worker knows. */
const targetsOf = (catalog: Catalog, { fallbacks = [], ...first }: PaidCall): Target[] =>
  [first, ...fallbacks].flatMap(({ model: id, name, upstreams, outputCap, isCapDefault, fileBound }) => {
    const model = catalog.find(id);
    return model ? [{ model, name, upstreams, outputCap, isCapDefault, fileBound }] : [];
  });

const totalTokens = ({ usage }: Pick<Capture, "usage">) => promptTokens(usage) + completionTokens(usage);

/** A provider's refusal may quote the prompt, which must not be logged. */
const reasonToLog = ({ code, message }: ServiceError) => (code === "invalid_value" ? {} : { reason: message });

async function bodyOf(files: Files, { body, requestId }: PaidCall, signal: AbortSignal): Promise<string> {
  if ("json" in body) return body.json;
  try {
    return await files.getBody(requestId, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw noCapacity("Storage for large requests is unavailable; nothing was charged.", 5, error);
  }
}

/** Ends a job that waits, at zero. Returns false if a delivery has started it. `reason` counts unless there is an earlier one. */
export async function endWithdrawn(
  deps: RunCallDeps,
  { account, requestId }: Pick<PaidCall, "account" | "requestId">,
  reason: StoredError,
): Promise<boolean> {
  const withdrawn = await deps.detachedCalls.withdraw(account, requestId, reason);
  if (!withdrawn) return false;
  const { payload, error } = withdrawn;
  await endWithoutRunning(deps, payload, new ServiceError(error.fields), undefined, error.status);
  return true;
}

/** Ends a call that is not run here, at zero or with the ledger entry that exists. */
export async function endWithoutRunning(
  deps: RunCallDeps,
  payload: PaidCall,
  error: ServiceError,
  trace?: DeliveryTrace,
  status: StoredError["status"] = "failed",
): Promise<void> {
  await storeError(deps, payload, { fields: error.fields(), status });
  const costNanoUsd = payload.isFree ? 0n : await releaseHold(deps, payload, error, status);
  const answerLost = costNanoUsd > 0n;
  markFailed(trace, error);
  deps.log.warn(
    { requestId: payload.requestId, ...trace?.ids, answerLost, code: error.code },
    "a call was ended without running it",
  );
  const { account, requestId } = payload;
  if (payload.detached?.background?.keepsEvents) await deps.eventLogs.close({ account, requestId });
  else if (isAwaited(payload)) await notifyCaptured(deps, payload, costNanoUsd, error);
}

/** No API instance waits for a job after it has been accepted, or for a line that a provider's batch has. */
const isAwaited = ({ detached, batch }: PaidCall): boolean =>
  batch?.upstream === undefined && (!detached || detached.isAwaited === true);

/** Captures zero, unless the ledger already has an entry. Resolves with the cost of the entry that counts. */
async function releaseHold(
  deps: RunCallDeps,
  payload: PaidCall,
  { code }: ServiceError,
  status: StoredError["status"],
): Promise<bigint> {
  const now = deps.clock.now();
  const fields = ledgerFields(payload, { attempts: [] }, { startedAt: now, endedAt: now });
  const call = { ...fields, until: capturableUntil(payload) };
  const reason = status === "cancelled" ? ({ status } as const) : ({ status: "failed", error: code } as const);
  const { entry } = await deps.money.release(call, reason);
  await endDetached(deps, payload, entry);
  return entry.costNanoUsd;
}

/** A caller's mistake is not an error of the span. */
const markFailed = (trace: DeliveryTrace | undefined, { status, code }: ServiceError) =>
  status >= 500 ? trace?.span.fail(code) : trace?.span.set({ "error.type": code });

/**
 * Deadline for capturing the cost. Afterwards the call's lease may be closed or its entry archived, so the cost is no longer
 * captured and the call is free.
 */
const capturableUntil = ({ lease, deadlineAt }: PaidCall): number =>
  deadlineAt + (lease === undefined ? archivableMs : capturableMs);

const workerDied = () => noCapacity("The worker that ran this call died; nothing was charged. Repeat it.", 1);
const endedElsewhere = () => noCapacity("The call was ended elsewhere; nothing was charged. Repeat it.", 1);

/**
 * Another worker captured the cost, and may have died before it notified the caller. If its answer arrives after this error,
 * the call is already closed, and the API refunds it.
 */
const notifyCaptured = (
  { replies }: RunCallDeps,
  { replyTo, requestId }: PaidCall,
  costNanoUsd: bigint,
  error: ServiceError,
) => {
  const cost = String(costNanoUsd);
  return replies.late(replyTo, requestId, error, { cost, ...(costNanoUsd > 0n && { answerLost: true as const }) });
};
