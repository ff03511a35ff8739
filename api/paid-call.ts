import { createHash } from "node:crypto";
import { setImmediate as endOfTurn } from "node:timers/promises";
import type { Request, RequestHandler, Response } from "express";
import type { JobView } from "#detached-calls";
import { invalidValue, toServiceError } from "#errors";
import { type ParsedCall, withSessionHeader } from "#formats";
import type { Claim } from "#idempotency";
import { isTextPool, jobCatalog } from "#jobs";
import { object } from "#json";
import { type Caller, RateLimitReached, type RateLimits } from "#keys";
import { formatUsd } from "#money";
import { admit, type Checked, check, isBudgeted } from "./admission/admit.ts";
import { authenticate } from "./admission/authenticate.ts";
import { withCacheMarks } from "./admission/cache-marks.ts";
import { assertLargeBodyPayable, limitFreeCalls } from "./admission/check-balance.ts";
import { type AsyncDeps, accept, acceptAgain, admitJob, asyncRequestOf } from "./async-call.ts";
import { newBackground } from "./background/accept.ts";
import { passedHeaders, payloadOf } from "./call-payload.ts";
import { answerParts, refuse } from "./http/answer.ts";
import type { JsonBody } from "./http/body.ts";
import { localsOf } from "./http/headers.ts";
import { tagsOf } from "./http/tags.ts";
import type { Unread } from "./http/unread.ts";
import { markReplayed } from "./idempotency.ts";
import type { PaidRoute, RouteBody } from "./paid-route.ts";
import { countAnonymous, isPayPerCall, type PaidBy, type PayPerCallDeps, payPerCall } from "./pay-per-call.ts";
import { createReservation, parseBody, type Reservation, type ReservationDeps } from "./reservation.ts";
import { type CachedAnswers, type CallRecording, cacheRequestOf } from "./response-cache/index.ts";
import { type ResolveDeps, resolveStored } from "./stored-responses.ts";

export interface CallDeps extends ReservationDeps, AsyncDeps, PayPerCallDeps, ResolveDeps {
  readonly cachedAnswers: CachedAnswers;
  readonly syncTimeoutMs: number;
  readonly unread: Unread;
}

const isReplaceable = (body: RouteBody & Partial<JsonBody>): body is RouteBody & JsonBody => "replace" in body;

/** The handler of a paid route. Submitted calls are answered by `OpenCalls`, refused ones here. */
export function paidRoute(deps: CallDeps, route: PaidRoute): RequestHandler {
  const { endpoint, codec } = route;
  return async (req, res) => {
    const { requestId } = localsOf(res);
    const reservation = createReservation(deps, route, req, res);
    try {
      reservation.arrive();
      await submitCall(deps, route, req, res, reservation);
    } catch (thrown) {
      const error = toServiceError(thrown);
      if (error.status >= 500)
        deps.log.error({ err: thrown, requestId, endpoint, ...reservation.traceIds() }, "a call was not admitted");
      // Release the key before responding, so that a corrected retry with the same key succeeds.
      await reservation.release(error);
      reservation.refusedBy(error);
      if (error instanceof RateLimitReached && !res.headersSent) setLimits(res, error.rateLimits);
      if (!res.headersSent) refuse(deps.clock, { req, res }, error, codec.error(error, requestId));
      // A stream that waited for an equal call has begun with pings.
      else if (!res.writableEnded) res.end(codec.streamError(error, requestId, false));
    } finally {
      reservation.end();
    }
  };
}

/** The steps of every call. Everything that must be released is acquired through the reservation. */
async function submitCall(
  deps: CallDeps,
  route: PaidRoute,
  req: Request,
  res: Response,
  reservation: Reservation,
): Promise<void> {
  const { requestId } = localsOf(res);
  const { job, codec, format } = route;

  // Refuse a caller over a limit before reading the body, unless that costs less than a second script for its tokens.
  const keyOwner = isPayPerCall(deps, route, req) ? undefined : await authenticate(deps.keys, req, format);
  if (keyOwner) reservation.identified(keyOwner);
  const early = keyOwner && (await readArrived(deps, route, req, reservation, keyOwner));
  const keySlot = keyOwner && (await reservation.takeSlot(keyOwner, early?.checked?.tokens));
  if (!keySlot) await countAnonymous(deps, req, res);
  else if (route.isFree) await limitFreeCalls(deps, keySlot);
  else await assertLargeBodyPayable(deps, req, keySlot.caller);
  if (early?.error) throw early.error;

  const tags = tagsOf(req);
  const cacheRequest = keySlot && cacheRequestOf(req, keySlot.caller.cache);

  const body = early?.body ?? (await reservation.readBody(keySlot?.caller));
  // The time limits of the call start once its body has arrived.
  const acceptedAt = deps.clock.now();
  // Resolve references first, so that the hold and the job cover the whole input.
  const stored =
    route.refersToStored && keyOwner && isReplaceable(body)
      ? await resolveStored(deps, keyOwner.account, body, (value) => parseBody(route, { value, bytes: body.bytes }))
      : undefined;
  // A slot has a newer caller if the key was changed since it was looked up.
  const known = early?.call && !stored && keySlot?.caller === keyOwner ? early : undefined;
  const parse = () => parseCall(route, req, body);
  const parsed = known?.call ?? (stored ? stored.parse(parse) : parse());
  const marked = known ? parsed : withCacheMarks(req, parsed, keySlot?.caller.promptCache ?? "off");
  const call = tags ? { ...marked, tags } : marked;
  const wanted = asyncRequestOf(req, route, call, keySlot !== undefined);

  const paidBy = keySlot
    ? paidByKey(route, req, keySlot.caller, body, wanted?.inBackground ? { ...call, stream: false } : call)
    : await payPerCall(deps, route, { req, res, body, call });
  if (!paidBy) return;
  const slot = keySlot ?? (await reservation.takeSlot(paidBy.caller));
  const { account } = slot.caller;
  const asked = { account, stream: call.stream, isPreferred: wanted?.isPreferred ?? false };

  // Callers with an `Idempotency-Key` wait until then at most; they can fetch the stored answer later.
  const answerBy = acceptedAt + deps.syncTimeoutMs;
  const owner = { account, requestId, instance: deps.instance, pool: jobCatalog[job].pool };
  const reserve = (textBytes: number) => deps.unread.reserve(res, account, textBytes);
  const claim =
    paidBy.idempotency &&
    (await reservation.claimKey({ ...paidBy.idempotency, ...owner }, { answerBy, res, reserve }, wanted !== undefined));
  if (claim?.kind === "running" || (claim?.kind === "answered" && wanted)) {
    const accepted = await acceptAgain(deps, res, asked, claim);
    if (accepted || claim.kind === "running") {
      reservation.handOver();
      return deps.keys.release(slot);
    }
  }
  if (claim?.kind === "answered") {
    await reservation.answered();
    return res.closed ? undefined : answerAgain(deps, route, res, call, claim);
  }

  if (body.refusal) throw body.refusal;
  const endsEarly = route.endsAtSyncTimeout && !claim && !wanted && !call.stream;
  const timeoutMs = endsEarly ? Math.min(deps.syncTimeoutMs, deps.callTimeoutMs) : deps.callTimeoutMs;
  let recording: CallRecording | undefined;
  if (cacheRequest) {
    const times = { acceptedAt, deadlineAt: acceptedAt + timeoutMs };
    const cached = {
      req,
      res,
      route,
      call,
      body,
      slot,
      asked: cacheRequest,
      isDetached: !!wanted,
      continues: stored?.previousResponseId !== undefined,
      canShare: !claim,
      ...times,
    };
    setLimits(res, slot.rateLimits);
    const answered = await deps.cachedAnswers.answer(cached);
    if (answered === "answered") return reservation.answered();
    recording = answered;
  }
  if (recording) reservation.records(recording);
  // A payment has one call at a time, so any hold left on its account belongs to a call that died.
  if (!keySlot) await deps.money.releaseAll(account);
  const request = object(body.value);
  const detached = wanted && (await admitJob(deps, { pool: owner.pool, ...asked, acceptedAt, wanted, request }));
  const deadlineAt = detached?.deadlineAt ?? acceptedAt + timeoutMs;
  // A call under a key can finish without this process, so it does not use this process's lease.
  const isLeased = isTextPool(owner.pool) && !claim && !detached;
  const admitted = await admit(detached ? { ...deps, backlogLimit: Number.POSITIVE_INFINITY } : deps, {
    requestId,
    slot,
    call,
    route,
    deadlineAt,
    checked: known?.checked,
    isLeased,
  });
  if (!res.headersSent) setLimits(res, slot.rateLimits);
  const trace = reservation.trace();
  trace?.admitted({ model: admitted.targets[0].model.id, stream: call.stream });

  const [{ model, name = model.id }] = admitted.targets;
  if (recording) {
    recording.model = model.id;
    // An answer that is shorter because of the balance is not for others.
    recording.isTransient = call.size.outputCap === undefined && admitted.targets.some((each) => !each.isCapDefault);
  }
  const { previousResponseId } = stored ?? {};
  const { keepsEvents } = detached?.payload.background ?? {};
  const background =
    keepsEvents === undefined
      ? undefined
      : newBackground(request, { requestId, keepsEvents, acceptedAt, model: name, previousResponseId });
  const payload = {
    ...payloadOf(deps, route, passedHeaders(req, route.passed), slot, call, admitted),
    acceptedAt,
    deadlineAt,
    // A response in the background is always streamed from its provider.
    ...(background && { stream: true }),
    ...(previousResponseId !== undefined && { previousResponseId }),
    ...(claim && { idempotencyKeyId: claim.id }),
    ...(detached && { detached: detached.payload }),
    ...(trace && { traceparent: trace.span.traceparent }),
  };
  const { maxTokens, leased } = admitted;
  reservation.handOver();
  const { answer } = route;
  const { answerFormat } = call;
  const { cleanUp } = body;
  const answering = {
    slot,
    codec,
    res,
    hidesReasoning: admitted.targets.some(({ model }) => model.hiddenReasoning),
    ...(leased && { leased }),
    ...(claim && { answerBy }),
    ...(detached && {
      answerBy: acceptedAt + detached.waitMs,
      detached: { ...detached.stored, answerFormat, background },
      accept: (job: JobView) => accept(deps, res, asked, job),
    }),
    ...(call.isBinary && { isBinary: call.isBinary }),
    ...(answer &&
      !call.stream && {
        write: (text: string) => answer(deps, { res, text, format: answerFormat }),
      }),
    ...(cleanUp && { cleanUp }),
    ...(recording && { recording }),
    ...(trace && { trace }),
  };
  reservation.submitted();
  await deps.openCalls.submit({ job, payload, maxTokens, ...answering }, body);
}

const parseCall = (route: PaidRoute, req: Request, body: RouteBody): ParsedCall =>
  withSessionHeader(parseBody(route, body), req.get("x-session-id"));

/** A body of this size takes less to parse than a script in Redis. */
const smallBytes = 16 * 1024;

interface EarlyCall {
  readonly body?: RouteBody & Partial<JsonBody>;
  readonly call?: ParsedCall;
  readonly checked?: Checked;
  /** The body could not be read. Thrown after the slot was taken, because limits refuse first. */
  readonly error?: unknown;
}

/**
 * Reads and checks a small call whose body has come with its headers, so that one script takes its slot and its tokens.
 * Returns undefined for other calls, among them those whose tokens depend on a stored answer or are taken with a budget.
 */
async function readArrived(
  deps: CallDeps,
  route: PaidRoute,
  req: Request,
  reservation: Reservation,
  caller: Caller,
): Promise<EarlyCall | undefined> {
  const { "content-length": length, "content-encoding": encoding } = req.headers;
  if (encoding !== undefined || !(Number(length) <= smallBytes)) return undefined;
  if (route.isFree || route.readBody || isBudgeted(caller) || caller.cache.enabled) return undefined;
  if (req.get("idempotency-key") !== undefined || req.get("x-xm-cache") !== undefined) return undefined;
  // Node parses the body that came with the headers after the microtasks of this handler.
  await endOfTurn();
  if (!req.complete) return undefined;
  let early: EarlyCall = {};
  try {
    const body = await reservation.readBody(caller);
    early = { body };
    const call = withCacheMarks(req, parseCall(route, req, body), caller.promptCache);
    if (call.uploads.length > 0) return early;
    return { body, call, checked: await check(deps, { call, route, caller }) };
  } catch (error) {
    // Anything wrong with the call is found again once it has its slot.
    return early.body ? early : { error };
  }
}

/** The owner of a key, and the call's `Idempotency-Key`. Streams ignore the key because they cannot be replayed. */
function paidByKey(
  route: PaidRoute,
  req: Request,
  caller: Caller,
  body: RouteBody,
  { buybackToken, stream }: ParsedCall,
): Partial<PaidBy> & Pick<PaidBy, "caller"> {
  if (buybackToken !== undefined)
    throw invalidValue(
      "buyback_token",
      "buyback_token: calls with an API key use the account's setting; omit this field.",
    );
  const key = route.isFree || stream ? undefined : req.get("idempotency-key");
  return key === undefined ? { caller } : { caller, idempotency: { key, hash: hashOf(route, req, body) } };
}

/**
 * Hashes everything that determines the answer. That includes the forwarded headers, which may select the provider's
 * behavior, but not the query: it only affects streams, and may contain the API key.
 */
function hashOf({ endpoint, model, passed }: PaidRoute, req: Request, body: RouteBody): string {
  const headers = passedHeaders(req, passed).map((header) => header.join(": "));
  const lines = [endpoint, ...(model === undefined ? [] : [model]), ...headers, ""];
  return createHash("sha256")
    .update(lines.join("\n"))
    .update(body.identity ?? body.text)
    .digest("base64url");
}

/** Sends the stored answer of an earlier request. */
async function answerAgain(
  deps: CallDeps,
  { answer: write }: PaidRoute,
  res: Response,
  { answerFormat: format }: ParsedCall,
  { requestId, answer }: Extract<Claim, { kind: "answered" }>,
): Promise<void> {
  if (!("text" in answer)) throw new TypeError("an upload's answer under the key of a call");
  markReplayed(res, requestId);
  res.set({ ...answer.headers, "x-xm-cost-usd": formatUsd(answer.costNanoUsd) });
  if (write) await write(deps, { res, text: answer.text, format });
  else answerParts(res.status(200), [answer.text]);
}

function setLimits(res: Response, limits: RateLimits): void {
  for (const [name, { limit, remaining, resetMs }] of Object.entries(limits)) {
    res.setHeader(`x-ratelimit-limit-${name}`, String(limit));
    res.setHeader(`x-ratelimit-remaining-${name}`, String(remaining));
    res.setHeader(`x-ratelimit-reset-${name}`, `${Math.ceil(resetMs / 1000)}s`);
  }
}
