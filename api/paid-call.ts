import { createHash } from "node:crypto";
import type { Request, RequestHandler, Response } from "express";
import { invalidValue, toServiceError } from "#errors";
import type { ParsedCall } from "#formats";
import { jobCatalog } from "#jobs";
import { type Caller, type Entered, RateLimitReached, type RateLimits } from "#keys";
import { formatUsd } from "#money";
import { type AdmissionDeps, admit } from "./admission/admit.ts";
import { authenticate } from "./admission/authenticate.ts";
import { staysCounted } from "./admission/counted.ts";
import { answerParts, stalledMs } from "./http/answer.ts";
import { type BodyReader, bodyTimeoutMs, type JsonBody } from "./http/body.ts";
import { localsOf } from "./http/headers.ts";
import { refuse } from "./http/refuse.ts";
import {
  type Claimed,
  claimKey,
  type IdempotencyDeps,
  type IdempotencyRequest,
  markReplayed,
  releaseKey,
} from "./idempotency.ts";
import type { OpenCalls } from "./open-calls/index.ts";
import type { PaidRoute } from "./paid-route.ts";
import { countAnonymous, isPayPerCall, type PaidBy, type PayPerCallDeps, payPerCall } from "./pay-per-call.ts";

export interface CallDeps extends AdmissionDeps, IdempotencyDeps, PayPerCallDeps {
  readonly openCalls: OpenCalls;
  readonly readBody: BodyReader;
  readonly instance: string;
  readonly publicUrl: () => string;
  readonly callTimeoutMs: number;
  readonly syncTimeoutMs: number;
}

/** A slot frees itself so long after the latest end of its call. */
const slotMarginMs = 10_000;

/**
 * The one way of every paid route: authenticate, enter, read, parse, take a payment, admit, submit. What follows is written
 * by `OpenCalls`. Who is over a limit is refused before a byte of the body is read.
 */
export function paidRoute(deps: CallDeps, route: PaidRoute): RequestHandler {
  const { job, endpoint, codec, format, isFree = false } = route;
  const { pool } = jobCatalog[job];
  const enter = (caller: Caller, requestId: string): Promise<Entered> =>
    deps.keys.enter(caller, { requestId, ttlMs: bodyTimeoutMs + deps.callTimeoutMs + slotMarginMs });
  return async (req, res) => {
    const { requestId } = localsOf(res);
    let submitted = () => {};
    let entered: Entered | undefined;
    let body: JsonBody | undefined;
    let unused: string | undefined;
    try {
      submitted = deps.openCalls.arrive();
      const keyed = isPayPerCall(deps, route, req) ? undefined : await authenticate(deps.keys, req, format);
      if (keyed) entered = await enter(keyed, requestId);
      else await countAnonymous(deps, req, res);
      body = await deps.readBody(req, res, entered?.caller ?? "anonymous");
      // A slow body takes nothing from the call's time, and gives it none.
      const readAt = deps.clock.now();
      const call = codec.parse(body.value, body.bytes);
      const paidBy = entered
        ? byKey(route, req, entered.caller, body, call)
        : await payPerCall(deps, route, { req, res, body, call });
      if (!paidBy) return;
      entered ??= await enter(paidBy.caller, requestId);
      const { caller } = entered;
      // Nobody waits longer than this; only an answer that is kept may come later.
      const answerBy = readAt + deps.syncTimeoutMs;
      const { idempotency } = paidBy;
      const claimed = idempotency && (await claim(deps, route, res, { caller, idempotency, answerBy }));
      if (claimed?.kind === "answered") {
        const holding = entered;
        entered = undefined;
        // Until then a stored answer that nobody reads takes one of the key's slots, as any other does.
        res.once("close", () => void deps.keys.leave(holding));
        return answerAgain(res, claimed);
      }
      unused = claimed?.id;
      // Whoever has the key is the only call of its payment: what is held there is held for one that died.
      if (!keyed) await deps.money.releaseAll(caller.account);
      const endsEarly = route.endsAtSyncTimeout && !claimed;
      const longestMs = endsEarly ? Math.min(deps.syncTimeoutMs, deps.callTimeoutMs) : deps.callTimeoutMs;
      const deadlineAt = readAt + longestMs;
      const admitted = await admit(deps, {
        requestId,
        caller,
        entered,
        call,
        serves: route,
        isFree,
        pool,
        deadlineAt,
      });
      res.set(limitHeaders(entered.rateLimits));
      unused = undefined;
      entered = undefined;
      const fileParam = isFree ? undefined : call.features.get("file");
      await deps.openCalls.submit(
        {
          job,
          codec,
          caller,
          res,
          takenTokens: admitted.takenTokens,
          mostTokens: admitted.mostTokens,
          ...(claimed && { answerBy }),
          payload: {
            v: 1,
            requestId,
            account: caller.account,
            keyId: caller.keyId,
            tier: caller.tier,
            endpoint,
            model: admitted.model.id,
            stream: call.stream,
            ...textCallFields(route, req, call),
            ...(fileParam !== undefined && { fileBound: { tokens: admitted.inputBound, param: fileParam } }),
            held: String(admitted.heldNanoUsd),
            outputCap: admitted.outputCap,
            inputEstimate: admitted.inputEstimate,
            replyTo: deps.instance,
            acceptedAt: readAt,
            deadlineAt,
            ...(call.input && { publicUrl: deps.publicUrl() }),
            ...(claimed && { idempotencyKeyId: claimed.id }),
            ...(caller.buybackToken !== null && { buybackToken: caller.buybackToken }),
          },
        },
        body,
      );
    } catch (thrown) {
      const error = toServiceError(thrown);
      if (error.status >= 500) deps.log.error({ err: thrown, requestId, endpoint }, "a call was not admitted");
      // Before the caller hears of it, so that a corrected retry with the same key succeeds.
      if (unused !== undefined) await releaseKey(deps, unused, requestId);
      if (entered) await deps.keys.leave(entered, { uncounted: !staysCounted(error) });
      if (error instanceof RateLimitReached) res.set(limitHeaders(error.rateLimits));
      if (!res.headersSent) refuse(deps.clock, { req, res }, error, codec.error(error, requestId));
    } finally {
      body?.release();
      submitted();
    }
  };
}

/** What a worker has to know of a call that is answered in text. */
function textCallFields({ format, framing, passed }: PaidRoute, req: Request, call: ParsedCall) {
  const headers = passedHeaders(req, passed);
  return {
    ...(format && { format }),
    ...(framing && { framing }),
    ...(headers.length > 0 && { headers: Object.fromEntries(headers) }),
    ...(call.uploads.length > 0 && { uploads: true as const }),
  };
}

const passedHeaders = (req: Request, names: PaidRoute["passed"] = []): [string, string][] =>
  names.flatMap((name) => {
    const value = req.get(name);
    return value === undefined ? [] : [[name, value]];
  });

/** Who calls with a key, and the `Idempotency-Key` of the call. A stream cannot be given again, so it ignores one. */
function byKey(
  route: PaidRoute,
  req: Request,
  caller: Caller,
  body: JsonBody,
  { buybackToken, stream }: ParsedCall,
): Partial<PaidBy> & Pick<PaidBy, "caller"> {
  if (buybackToken !== undefined)
    throw invalidValue("buyback_token", "buyback_token: calls by API key have their account's; leave it out.");
  const key = route.isFree || stream ? undefined : req.get("idempotency-key");
  return key === undefined ? { caller } : { caller, idempotency: { key, hash: hashOf(route, req, body) } };
}

/**
 * Of all that decides the answer: the headers that are passed on choose among the provider's behaviors. Nothing in a
 * query changes an answer that is no stream, and it may hold the API key.
 */
function hashOf({ endpoint, model, passed }: PaidRoute, req: Request, body: JsonBody): string {
  const headers = passedHeaders(req, passed).map((header) => header.join(": "));
  const lines = [endpoint, ...(model === undefined ? [] : [model]), ...headers, ""];
  return createHash("sha256").update(lines.join("\n")).update(body.text).digest("base64url");
}

function claim(
  deps: CallDeps,
  { job }: PaidRoute,
  res: Response,
  { caller, idempotency, answerBy }: { caller: Caller; idempotency: IdempotencyRequest; answerBy: number },
): Promise<Claimed> {
  const { account } = caller;
  const { requestId } = localsOf(res);
  const ask = { ...idempotency, account, requestId, instance: deps.instance, pool: jobCatalog[job].pool };
  return claimKey(deps, ask, { answerBy, res });
}

function answerAgain(res: Response, { requestId, answer }: Extract<Claimed, { kind: "answered" }>): void {
  if (!("text" in answer)) throw new TypeError("an upload's answer under the key of a call");
  markReplayed(res, requestId);
  res.set({ ...answer.headers, "x-xm-cost-usd": formatUsd(answer.costNanoUsd) });
  answerParts(res.status(200), [answer.text]);
  res.setTimeout(stalledMs, () => res.destroy());
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
