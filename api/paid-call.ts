import { createHash } from "node:crypto";
import type { Request, RequestHandler, Response } from "express";
import { invalidValue, ServiceError, toServiceError } from "#errors";
import { type ParsedCall, parseRouted } from "#formats";
import type { ClaimRequest } from "#idempotency";
import { type CallTarget, isTextPool, jobCatalog, type PaidCall } from "#jobs";
import { type Caller, RateLimitReached, type RateLimits, type Slot } from "#keys";
import { formatUsd } from "#money";
import type { Background } from "#platform/background";
import type { Tracing } from "#platform/tracing";
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
import { assertLargeBodyPayable } from "./admission/large-body.ts";
import { limitFreeCalls } from "./admission/limit-free-calls.ts";
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

/** A paid route. Its calls are answered by `OpenCalls` once they are submitted, and here if they are refused. */
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
      // Before the caller is answered, so that a corrected retry with the same key succeeds.
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

/** What a request takes on its way to `submit`, and how all of it is released. */
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
    /** From here on the slot and the claim are released by what answers the call. */
    handOver(): void {
      slot = undefined;
      claimId = undefined;
    },
    /** From here on what the job reads is deleted by what answers the call. */
    submitted(): void {
      isSubmitted = true;
    },
    isSubmitted: () => isSubmitted,
    /** What was submitted is ended by what answers it. */
    refusedBy(error: ServiceError): void {
      if (isSubmitted) return;
      const { status, code } = error;
      trace?.end(status, code);
      deps.observeCall({ endpoint, status, code });
      if (keyOwner) deps.refusals.note({ requestId, account: keyOwner.account, key: keyOwner.keyId, endpoint }, error);
    },
    /** For a request that is refused. */
    async release(refusedBy: ServiceError): Promise<void> {
      if (claimId !== undefined) await releaseKey(deps, claimId, requestId);
      if (slot) await deps.keys.release(slot, { refusedBy, costNanoUsd: 0n });
    },
    /** For every request, once it is submitted, answered or refused. */
    end(): void {
      body?.release();
      if (body?.cleanUp && !isSubmitted)
        deps.background.run("deleting the file of a refused call", body.cleanUp(), { requestId });
      // Answered again from an earlier call.
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

/** The steps of every call. Those that take something take it through the reservation. */
async function submitCall(
  deps: CallDeps,
  route: PaidRoute,
  req: Request,
  res: Response,
  reservation: ReturnType<typeof createReservation>,
): Promise<void> {
  const { requestId } = localsOf(res);
  const { job, codec, format } = route;

  // A caller over a limit is refused before a byte of the body is read.
  const keyOwner = isPayPerCall(deps, route, req) ? undefined : await authenticate(deps.keys, req, format);
  if (keyOwner) reservation.identified(keyOwner);
  const keySlot = keyOwner && (await reservation.takeSlot(keyOwner));
  if (!keySlot) await countAnonymous(deps, req, res);
  else if (route.isFree) await limitFreeCalls(deps, keySlot);
  else await assertLargeBodyPayable(deps, req, keySlot.caller);

  const body = await reservation.readBody();
  // The time of the call counts from the end of its body.
  const acceptedAt = deps.clock.now();
  const parse = () => parseBody(route, body);
  // Before anything is measured: what is held and sent on covers the whole input.
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

  // No caller waits longer than this; only an answer that is stored may come later.
  const answerBy = acceptedAt + deps.syncTimeoutMs;
  const owner = { account, requestId, instance: deps.instance, pool: jobCatalog[job].pool };
  const claim =
    paidBy.idempotency && (await reservation.claimKey({ ...paidBy.idempotency, ...owner }, { answerBy, res }));
  if (claim?.kind === "answered") {
    // As for any other answer, the slot is taken until the caller has it. One who disconnected gets none.
    reservation.handOver();
    if (res.closed) return deps.keys.release(slot);
    res.once("close", () => void deps.keys.release(slot));
    return answerAgain(deps, route, res, call, claim);
  }

  if (body.refusal) throw body.refusal;
  // A payment has one call at a time: what is still held on its account was held for a call that died.
  if (!keySlot) await deps.money.releaseAll(account);
  const endsEarly = route.endsAtSyncTimeout && !claim && !call.stream;
  const timeoutMs = endsEarly ? Math.min(deps.syncTimeoutMs, deps.callTimeoutMs) : deps.callTimeoutMs;
  const deadlineAt = acceptedAt + timeoutMs;
  // An answer under a key is decided without this process, too.
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

/** The owner of a key, and the call's `Idempotency-Key`, which a stream ignores: it cannot be repeated. */
function paidByKey(
  route: PaidRoute,
  req: Request,
  caller: Caller,
  body: RouteBody,
  { buybackToken, stream }: ParsedCall,
): Partial<PaidBy> & Pick<PaidBy, "caller"> {
  if (buybackToken !== undefined)
    throw invalidValue("buyback_token", "buyback_token: calls by API key have their account's; leave it out.");
  const key = route.isFree || stream ? undefined : req.get("idempotency-key");
  return key === undefined ? { caller } : { caller, idempotency: { key, hash: hashOf(route, req, body) } };
}

/**
 * Of everything that decides the answer: the headers that are sent on choose among the provider's behaviors. The query is
 * not included: it changes no answer but a stream's, and may hold the API key.
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

/** The stored answer of an earlier request. */
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
