import { createHash } from "node:crypto";
import type { Request, RequestHandler, Response } from "express";
import { invalidValue, ServiceError, toServiceError } from "#errors";
import { type ParsedCall, parseRouted } from "#formats";
import type { ClaimRequest } from "#idempotency";
import { type CallTarget, isTextPool, jobCatalog, type PaidCall } from "#jobs";
import { type Caller, RateLimitReached, type RateLimits, type Slot } from "#keys";
import { formatUsd } from "#money";
import type { Background } from "#platform/concurrency/background";
import type { Tracing } from "#platform/observability/tracing";
import type { Refusals } from "#refusals";
import {
  type AdmissionDeps,
  type Admitted,
  type AdmittedTarget,
  admit,
  type CallWithFiles,
  checkBeforeFiles,
} from "./admission/admit.ts";
import { authenticate } from "./admission/authenticate.ts";
import { assertLargeBodyPayable, limitFreeCalls } from "./admission/check-balance.ts";
import { beginCallTrace, type CallTrace } from "./call-trace.ts";
import { answerParts, refuse, stalledMs } from "./http/answer.ts";
import { bodyTimeoutMs, type JsonBody } from "./http/body.ts";
import { formTimeoutMs } from "./http/file-form.ts";
import { localsOf } from "./http/headers.ts";
import { type Claimed, claimKey, type IdempotencyDeps, markReplayed, releaseKey } from "./idempotency.ts";
import type { EndedCall, OpenCalls } from "./open-calls/index.ts";
import type { PaidRoute, RouteBody, RouteBodyDeps } from "./paid-route.ts";
import { countAnonymous, isPayPerCall, type PaidBy, type PayPerCallDeps, payPerCall } from "./pay-per-call.ts";
import { type ResolveDeps, resolveStored } from "./stored-responses.ts";

export interface CallDeps extends AdmissionDeps, PayPerCallDeps, IdempotencyDeps, RouteBodyDeps, ResolveDeps {
  readonly openCalls: OpenCalls;
  readonly refusals: Pick<Refusals, "note">;
  readonly tracing: Tracing | undefined;
  readonly observeCall: (call: EndedCall) => void;
  readonly background: Background;
  readonly callTimeoutMs: number;
  readonly publicUrl: () => string;
  readonly syncTimeoutMs: number;
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
      if (error instanceof RateLimitReached) res.set(limitHeaders(error.rateLimits));
      if (!res.headersSent) refuse(deps.clock, { req, res }, error, codec.error(error, requestId));
    } finally {
      reservation.end();
    }
  };
}

/** A slot expires this long after the latest possible end of its call. */
const slotMarginMs = 10_000;

/** Holds what a request acquires on its way to `submit`, and releases all of it. */
function createReservation(deps: CallDeps, route: PaidRoute, req: Request, res: Response) {
  const { requestId } = localsOf(res);
  const { endpoint } = route;
  let depart = () => {};
  let slot: Slot | undefined;
  let body: RouteBody | undefined;
  let isSubmitted = false;
  let claimId: string | undefined;
  let trace: CallTrace | undefined;
  let keyOwner: Caller | undefined;
  return {
    arrive(): void {
      depart = deps.openCalls.arrive();
    },
    identified(caller: Caller): void {
      keyOwner = caller;
    },
    async takeSlot(caller: Caller): Promise<Slot> {
      const bodyMs = route.readBody ? formTimeoutMs : bodyTimeoutMs;
      slot = await deps.keys.takeSlot(caller, { requestId, ttlMs: bodyMs + deps.callTimeoutMs + slotMarginMs });
      const { tracing } = deps;
      trace = tracing && beginCallTrace(tracing, { req, res, endpoint, account: caller.account });
      trace?.passed("slot");
      return slot;
    },
    trace: () => trace,
    traceIds: () => trace?.span.ids,
    async readBody(): Promise<RouteBody & Partial<JsonBody>> {
      const { readBody } = route;
      const caller = slot?.caller;
      body =
        readBody && caller
          ? await readBody(deps, {
              req,
              res,
              caller,
              refusalOf: (draft, files) => refusalOf(deps, { route, caller, body: draft, files }),
            })
          : await deps.readBody(req, res, caller ?? "anonymous", route.jsonLimits);
      trace?.passed("body");
      return body;
    },
    async claimKey(request: ClaimRequest, waiting: { answerBy: number; res: Response }): Promise<Claimed> {
      const claimed = await claimKey(deps, request, waiting);
      if (claimed.kind === "new") claimId = claimed.id;
      trace?.passed("idempotency");
      return claimed;
    },
    /** The code that answers the call releases the slot and the claim from here on. */
    handOver(): void {
      slot = undefined;
      claimId = undefined;
    },
    /** `OpenCalls` deletes the files that the job reads from here on. */
    submitted(): void {
      isSubmitted = true;
    },
    isSubmitted: () => isSubmitted,
    /** Records a refusal. `OpenCalls` records a submitted call when it ends. */
    refusedBy(error: ServiceError): void {
      if (isSubmitted) return;
      const { status, code } = error;
      trace?.end(status, code);
      deps.observeCall({ endpoint, status, code });
      if (keyOwner) deps.refusals.note({ requestId, account: keyOwner.account, key: keyOwner.keyId, endpoint }, error);
    },
    /** Releases the claim and the slot of a refused request. */
    async release(refusedBy: ServiceError): Promise<void> {
      if (claimId !== undefined) await releaseKey(deps, claimId, requestId);
      if (slot) await deps.keys.release(slot, { refusedBy, costNanoUsd: 0n });
    },
    /** Called for every request once it has been submitted, answered or refused. */
    end(): void {
      body?.release();
      if (body?.cleanUp && !isSubmitted)
        deps.background.run("the file of a refused call could not be deleted", body.cleanUp(), { requestId });
      // The request got a stored answer. After a refusal the trace has already ended.
      if (!isSubmitted) trace?.end(res.statusCode);
      depart();
    },
  };
}

const parseBody = ({ job, codec }: PaidRoute, { value, bytes }: Pick<RouteBody, "value" | "bytes">): ParsedCall =>
  parseRouted(codec, value, bytes, isTextPool(jobCatalog[job].pool));

async function refusalOf(
  deps: CallDeps,
  { route, body, ...rest }: { route: PaidRoute; body: RouteBody } & Omit<CallWithFiles, "call" | "route">,
): Promise<ServiceError | undefined> {
  try {
    await checkBeforeFiles(deps, { ...rest, route, call: parseBody(route, body) });
    return undefined;
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
}

/** The steps of every call. Everything that must be released is acquired through the reservation. */
async function submitCall(
  deps: CallDeps,
  route: PaidRoute,
  req: Request,
  res: Response,
  reservation: ReturnType<typeof createReservation>,
): Promise<void> {
  const { requestId } = localsOf(res);
  const { job, codec, format } = route;

  // Refuse a caller over a limit before reading a byte of the body.
  const keyOwner = isPayPerCall(deps, route, req) ? undefined : await authenticate(deps.keys, req, format);
  if (keyOwner) reservation.identified(keyOwner);
  const keySlot = keyOwner && (await reservation.takeSlot(keyOwner));
  if (!keySlot) await countAnonymous(deps, req, res);
  else if (route.isFree) await limitFreeCalls(deps, keySlot);
  else await assertLargeBodyPayable(deps, req, keySlot.caller);

  const body = await reservation.readBody();
  // The time limits of the call start once its body has arrived.
  const acceptedAt = deps.clock.now();
  const parse = () => parseBody(route, body);
  // Resolve references first, so that the hold and the job cover the whole input.
  const stored =
    route.refersToStored && keyOwner && isReplaceable(body)
      ? await resolveStored(deps, keyOwner.account, body, (value) => parseBody(route, { value, bytes: body.bytes }))
      : undefined;
  const call = stored ? stored.parse(parse) : parse();

  const paidBy = keySlot
    ? paidByKey(route, req, keySlot.caller, body, call)
    : await payPerCall(deps, route, { req, res, body, call });
  if (!paidBy) return;
  const slot = keySlot ?? (await reservation.takeSlot(paidBy.caller));
  const { account } = slot.caller;

  // Callers with an `Idempotency-Key` wait until then at most; they can fetch the stored answer later.
  const answerBy = acceptedAt + deps.syncTimeoutMs;
  const owner = { account, requestId, instance: deps.instance, pool: jobCatalog[job].pool };
  const claim =
    paidBy.idempotency && (await reservation.claimKey({ ...paidBy.idempotency, ...owner }, { answerBy, res }));
  if (claim?.kind === "answered") {
    // The slot stays taken until the caller has received the stored answer, as with any other answer. A caller who has
    // disconnected gets none.
    reservation.handOver();
    if (res.closed) return deps.keys.release(slot);
    res.once("close", () => void deps.keys.release(slot));
    return answerAgain(deps, route, res, call, claim);
  }

  if (body.refusal) throw body.refusal;
  // A payment has one call at a time, so any hold left on its account belongs to a call that died.
  if (!keySlot) await deps.money.releaseAll(account);
  const endsEarly = route.endsAtSyncTimeout && !claim && !call.stream;
  const timeoutMs = endsEarly ? Math.min(deps.syncTimeoutMs, deps.callTimeoutMs) : deps.callTimeoutMs;
  const deadlineAt = acceptedAt + timeoutMs;
  // A call under a key can finish without this process, so it does not use this process's lease.
  const isLeased = isTextPool(jobCatalog[job].pool) && !claim;
  const admitted = await admit(deps, { requestId, slot, call, route, deadlineAt, isLeased });
  res.set(limitHeaders(slot.rateLimits));
  const trace = reservation.trace();
  trace?.admitted({ model: admitted.targets[0].model.id, stream: call.stream });

  const payload = {
    ...payloadOf(deps, route, req, slot, call, admitted),
    acceptedAt,
    deadlineAt,
    ...(stored?.previousResponseId !== undefined && { previousResponseId: stored.previousResponseId }),
    ...(claim && { idempotencyKeyId: claim.id }),
    ...(trace && { traceparent: trace.span.traceparent }),
  };
  const { maxTokens, leased } = admitted;
  reservation.handOver();
  const { answer } = route;
  const { answerFormat: wanted } = call;
  const { cleanUp } = body;
  const answering = {
    slot,
    codec,
    res,
    hidesReasoning: admitted.targets.some(({ model }) => model.hiddenReasoning),
    ...(leased && { leased }),
    ...(claim && { answerBy }),
    ...(call.isBinary && { isBinary: call.isBinary }),
    ...(answer &&
      !call.stream && {
        write: (text: string) => answer(deps, { res, text, format: wanted }),
      }),
    ...(cleanUp && { cleanUp }),
    ...(trace && { trace }),
  };
  reservation.submitted();
  await deps.openCalls.submit({ job, payload, maxTokens, ...answering }, body);
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

const passedHeaders = (req: Request, names: PaidRoute["passed"] = []): [string, string][] =>
  names.flatMap((name) => {
    const value = req.get(name);
    return value === undefined ? [] : [[name, value]];
  });

/** Sends the stored answer of an earlier request. */
async function answerAgain(
  deps: CallDeps,
  { answer: write }: PaidRoute,
  res: Response,
  { answerFormat: format }: ParsedCall,
  { requestId, answer }: Extract<Claimed, { kind: "answered" }>,
): Promise<void> {
  if (!("text" in answer)) throw new TypeError("an upload's answer under the key of a call");
  markReplayed(res, requestId);
  res.set({ ...answer.headers, "x-xm-cost-usd": formatUsd(answer.costNanoUsd) });
  res.setTimeout(stalledMs, () => res.destroy());
  if (write) await write(deps, { res, text: answer.text, format });
  else answerParts(res.status(200), [answer.text]);
}

function payloadOf(
  { instance, publicUrl }: CallDeps,
  { endpoint, format, framing, passed, isFree }: PaidRoute,
  req: Request,
  { requestId, caller: { account, keyId, tier, buybackToken } }: Slot,
  call: ParsedCall,
  { targets, heldNanoUsd, leased, inputEstimate }: Admitted,
): Omit<PaidCall, "body" | "acceptedAt" | "deadlineAt"> {
  const headers = passedHeaders(req, passed);
  const fileParam = isFree ? undefined : call.features.get("file");
  const [first, ...fallbacks] = targets.map((target) => targetOf(target, fileParam));
  if (!first) throw new TypeError("a call of no model");
  return {
    v: 1,
    requestId,
    account,
    keyId,
    tier,
    endpoint,
    ...first,
    ...(call.models && { fallbacks }),
    stream: call.stream,
    ...(format && { format }),
    ...(framing && { framing }),
    ...(headers.length > 0 && { headers: Object.fromEntries(headers) }),
    ...(call.uploads.length > 0 && { uploads: true }),
    ...(isFree && { isFree }),
    held: String(heldNanoUsd),
    ...(leased && { lease: leased.lease }),
    inputEstimate,
    replyTo: instance,
    ...(call.input && { publicUrl: publicUrl() }),
    ...(buybackToken !== null && { buybackToken }),
  };
}

const targetOf = (
  { model, name, upstreams, outputCap, isCapDefault, inputBound }: AdmittedTarget,
  fileParam: string | undefined,
): CallTarget => ({
  model: model.id,
  ...(name !== undefined && { name }),
  ...(upstreams && { upstreams: [...upstreams] }),
  outputCap,
  ...(isCapDefault && { isCapDefault }),
  ...(fileParam !== undefined && { fileBound: { tokens: inputBound, param: fileParam } }),
});

const limitHeaders = (limits: RateLimits) =>
  Object.fromEntries(
    Object.entries(limits).flatMap(([name, { limit, remaining, resetMs }]) => [
      [`x-ratelimit-limit-${name}`, String(limit)],
      [`x-ratelimit-remaining-${name}`, String(remaining)],
      [`x-ratelimit-reset-${name}`, `${Math.ceil(resetMs / 1000)}s`],
    ]),
  );
