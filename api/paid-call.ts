import { createHash } from "node:crypto";
import type { Request, RequestHandler, Response } from "express";
import { invalidValue, toServiceError } from "#errors";
import type { ParsedCall } from "#formats";
import { jobCatalog, type PaidCall } from "#jobs";
import { type Caller, RateLimitReached, type RateLimits, type Slot } from "#keys";
import { formatUsd } from "#money";
import { type AdmissionDeps, type Admitted, admit } from "./admission/admit.ts";
import { authenticate } from "./admission/authenticate.ts";
import { answerParts, stalledMs } from "./http/answer.ts";
import type { JsonBody } from "./http/body.ts";
import { localsOf } from "./http/headers.ts";
import { refuse } from "./http/refuse.ts";
import { type Claimed, type IdempotencyRequest, markReplayed } from "./idempotency.ts";
import type { PaidRoute } from "./paid-route.ts";
import { countAnonymous, isPayable, type Payer, type PayerDeps, payerOf } from "./payer.ts";
import { createReservation, type Reservation, type ReservationDeps } from "./reservation.ts";

export interface CallDeps extends AdmissionDeps, PayerDeps, ReservationDeps {
  readonly instance: string;
  readonly publicUrl: () => string;
  readonly syncTimeoutMs: number;
}

interface RequestContext {
  readonly req: Request;
  readonly res: Response;
  readonly requestId: string;
}

/** The pipeline of every paid route. What it submits is answered by `OpenCalls`, everything else here. */
export function paidRoute(deps: CallDeps, route: PaidRoute): RequestHandler {
  return async (req, res) => {
    const { requestId } = localsOf(res);
    const context = { req, res, requestId };
    const reservation = createReservation(deps, requestId);
    try {
      reservation.arrive();
      await serveCall(deps, route, context, reservation);
    } catch (thrown) {
      await refuseCall(deps, route, context, reservation, thrown);
    } finally {
      reservation.end();
    }
  };
}

async function serveCall(
  deps: CallDeps,
  route: PaidRoute,
  context: RequestContext,
  reservation: Reservation,
): Promise<void> {
  const { req, res, requestId } = context;
  const { money, openCalls, clock } = deps;

  // A caller over a limit is refused before a byte of the body is read.
  const keyOwner = isPayable(deps, route, req) ? undefined : await authenticate(deps.keys, req, route.format);
  const keySlot = keyOwner && (await reservation.takeSlot(keyOwner));
  if (!keySlot) await countAnonymous(deps, req, res);

  const body = await reservation.readBody(req, res);
  // The time of the call counts from the end of its body.
  const acceptedAt = clock.now();
  const call = route.codec.parse(body.value, body.bytes);

  const payer = keySlot
    ? keyPayer(route, req, keySlot.caller, body, call)
    : await payerOf(deps, route, { req, res, body, call });
  if (!payer) return;
  const slot = keySlot ?? (await reservation.takeSlot(payer.caller));

  // No caller waits longer than this; only an answer that is stored may come later.
  const answerBy = acceptedAt + deps.syncTimeoutMs;
  const claimRequest = payer.idempotency && claimRequestOf(deps, route, requestId, slot.caller, payer.idempotency);
  const claim = claimRequest && (await reservation.claimKey(claimRequest, { answerBy, res }));
  if (claim?.kind === "answered") {
    reservation.handOver();
    return answerAgain(deps, res, claim, slot);
  }

  // A payment has one call at a time: what is held on its account was held for one that died.
  if (!keySlot) await money.abandon(slot.caller.account);
  const endsEarly = route.endsAtSyncTimeout && !claim;
  const timeoutMs = endsEarly ? Math.min(deps.syncTimeoutMs, deps.callTimeoutMs) : deps.callTimeoutMs;
  const deadlineAt = acceptedAt + timeoutMs;
  const admitted = await admit(deps, { requestId, slot, call, route, deadlineAt });
  res.set(limitHeaders(slot.rateLimits));

  const payload = {
    ...payloadOf(deps, route, context, slot.caller, call, admitted),
    acceptedAt,
    deadlineAt,
    ...(claim && { idempotencyKeyId: claim.id }),
  };
  const { job, codec } = route;
  const { maxTokens } = admitted;
  reservation.handOver();
  await openCalls.submit({ job, payload, slot, maxTokens, ...(claim && { answerBy }), codec, res }, body);
}

async function refuseCall(
  { clock, log }: CallDeps,
  { endpoint, codec }: PaidRoute,
  { req, res, requestId }: RequestContext,
  reservation: Reservation,
  thrown: unknown,
): Promise<void> {
  const error = toServiceError(thrown);
  if (error.status >= 500) log.error({ err: thrown, requestId, endpoint }, "a call was not admitted");
  // Before the caller is answered, so that a corrected retry with the same key succeeds.
  await reservation.release(error);
  if (error instanceof RateLimitReached) res.set(limitHeaders(error.rateLimits));
  if (!res.headersSent) refuse(clock, { req, res }, error, codec.error(error, requestId));
}

/** The owner of a key, and the call's `Idempotency-Key`, which a stream ignores: it cannot be repeated. */
function keyPayer(
  route: PaidRoute,
  req: Request,
  caller: Caller,
  body: JsonBody,
  { buybackToken, stream }: ParsedCall,
): Partial<Payer> & Pick<Payer, "caller"> {
  if (buybackToken !== undefined)
    throw invalidValue("buyback_token", "buyback_token: calls by API key have their account's; leave it out.");
  const key = route.isFree || stream ? undefined : req.get("idempotency-key");
  return key === undefined ? { caller } : { caller, idempotency: { key, hash: hashOf(route, req, body) } };
}

/**
 * Of everything that decides the answer: the headers that are sent on choose among the provider's behaviors. The query is
 * left out: it changes no answer but a stream's, and may hold the API key.
 */
function hashOf({ endpoint, model, passed }: PaidRoute, req: Request, body: JsonBody): string {
  const headers = passedHeaders(req, passed).map((header) => header.join(": "));
  const lines = [endpoint, ...(model === undefined ? [] : [model]), ...headers, ""];
  return createHash("sha256").update(lines.join("\n")).update(body.text).digest("base64url");
}

const passedHeaders = (req: Request, names: PaidRoute["passed"] = []): [string, string][] =>
  names.flatMap((name) => {
    const value = req.get(name);
    return value === undefined ? [] : [[name, value]];
  });

const claimRequestOf = (
  { instance }: CallDeps,
  { job }: PaidRoute,
  requestId: string,
  { account }: Caller,
  idempotency: IdempotencyRequest,
) => ({ ...idempotency, account, requestId, instance, pool: jobCatalog[job].pool });

/** The stored answer of an earlier request. The slot is taken until it is written, as for any other answer. */
function answerAgain(
  { keys }: CallDeps,
  res: Response,
  { requestId, answer }: Extract<Claimed, { kind: "answered" }>,
  slot: Slot,
): void {
  res.once("close", () => void keys.release(slot));
  if (!("text" in answer)) throw new TypeError("an upload's answer under the key of a call");
  markReplayed(res, requestId);
  res.set({ ...answer.headers, "x-xm-cost-usd": formatUsd(answer.costNanoUsd) });
  answerParts(res.status(200), [answer.text]);
  res.setTimeout(stalledMs, () => res.destroy());
}

function payloadOf(
  { instance, publicUrl }: CallDeps,
  { endpoint, format, framing, passed, isFree }: PaidRoute,
  { req, requestId }: RequestContext,
  { account, keyId, tier, buybackToken }: Caller,
  call: ParsedCall,
  { model, heldNanoUsd, outputCap, inputBound, inputEstimate }: Admitted,
): Omit<PaidCall, "body" | "acceptedAt" | "deadlineAt"> {
  const headers = passedHeaders(req, passed);
  const fileParam = isFree ? undefined : call.features.get("file");
  return {
    v: 1,
    requestId,
    account,
    keyId,
    tier,
    endpoint,
    model: model.id,
    stream: call.stream,
    ...(format && { format }),
    ...(framing && { framing }),
    ...(headers.length > 0 && { headers: Object.fromEntries(headers) }),
    ...(call.uploads.length > 0 && { uploads: true }),
    ...(fileParam !== undefined && { fileBound: { tokens: inputBound, param: fileParam } }),
    held: String(heldNanoUsd),
    outputCap,
    inputEstimate,
    replyTo: instance,
    ...(call.input && { publicUrl: publicUrl() }),
    ...(buybackToken !== null && { buybackToken }),
  };
}

const seconds = (ms: number) => `${Math.ceil(ms / 1000)}s`;

const limitHeaders = (limits: RateLimits) => ({
  "x-ratelimit-limit-requests": String(limits.limitRequests),
  "x-ratelimit-remaining-requests": String(limits.remainingRequests),
  "x-ratelimit-reset-requests": seconds(limits.resetRequestsMs),
  "x-ratelimit-limit-tokens": String(limits.limitTokens),
  "x-ratelimit-remaining-tokens": String(limits.remainingTokens),
  "x-ratelimit-reset-tokens": seconds(limits.resetTokensMs),
});
