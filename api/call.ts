import { createHash } from "node:crypto";
import type { Request, RequestHandler, Response } from "express";
import { invalidValue, toServiceError } from "#errors";
import type { ParsedCall } from "#formats";
import { jobCatalog } from "#jobs";
import { type Caller, RateLimitReached, type RateLimits } from "#keys";
import { formatUsd } from "#money";
import { type AdmissionDeps, admit } from "./admission/admit.ts";
import { authenticate } from "./admission/authenticate.ts";
import { answerError, answerJson } from "./http/answer.ts";
import type { createBodyReader, JsonBody } from "./http/body.ts";
import { localsOf } from "./http/headers.ts";
import type { OpenCalls } from "./open-calls.ts";
import type { PaidRoute } from "./paid-route.ts";
import { countStranger, isPayable, type Payer, type PayerDeps, payerOf } from "./payer.ts";
import { type Claimed, claimKey, markReplayed, type ReplayAsk, type ReplayDeps, releaseKey } from "./replay.ts";

export interface CallDeps extends AdmissionDeps, ReplayDeps, PayerDeps {
  readonly openCalls: OpenCalls;
  readonly readBody: ReturnType<typeof createBodyReader>;
  readonly instance: string;
  readonly publicUrl: () => string;
  readonly callTimeoutMs: number;
  readonly syncTimeoutMs: number;
}

/** The one way of every paid route: authenticate (or take a payment), read, parse, admit, submit. What follows is written by `OpenCalls`. */
export function paidRoute(deps: CallDeps, route: PaidRoute): RequestHandler {
  const { job, endpoint, codec, format, isFree = false } = route;
  const { pool } = jobCatalog[job];
  return async (req, res) => {
    const { requestId, arrivedAt } = localsOf(res);
    let submitted = () => {};
    let unused: string | undefined;
    try {
      submitted = deps.openCalls.arrive();
      const keyed = isPayable(deps, route, req) ? undefined : await authenticate(deps.keys, req, format);
      if (!keyed) await countStranger(deps, req, res);
      const body = await deps.readBody(req, res);
      const call = codec.parse(body.value, body.bytes);
      const payer = keyed ? byKey(route, req, keyed, body, call) : await payerOf(deps, route, { req, res, body, call });
      if (!payer) return;
      const { caller, replay } = payer;
      const claimed = replay && (await claim(deps, route, res, caller, replay));
      if (claimed?.kind === "answered") return answerAgain(res, claimed);
      unused = claimed?.id;
      // Whoever has the key is the only call of its payment: what is held there is held for one that died.
      if (!keyed) await deps.money.abandon(caller.account);
      // Nobody waits longer than this; only an answer that is kept may come later.
      const answerBy = arrivedAt + deps.syncTimeoutMs;
      const endsEarly = route.endsAtSyncTimeout && !claimed;
      const longestMs = endsEarly ? Math.min(deps.syncTimeoutMs, deps.callTimeoutMs) : deps.callTimeoutMs;
      const deadlineAt = arrivedAt + longestMs;
      const admitted = await admit(deps, {
        requestId,
        caller,
        call,
        serves: route,
        isFree,
        pool,
        arrivedAt,
        deadlineAt,
      });
      res.set(limitHeaders(admitted.limits));
      unused = undefined;
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
            ...asText(route, req, call),
            held: String(admitted.heldNanoUsd),
            outputCap: admitted.outputCap,
            inputEstimate: admitted.inputEstimate,
            replyTo: deps.instance,
            acceptedAt: arrivedAt,
            deadlineAt,
            ...(call.input && { publicUrl: deps.publicUrl() }),
            ...(claimed && { replay: claimed.id }),
            ...(caller.buybackToken !== null && { buybackToken: caller.buybackToken }),
          },
        },
        body,
      );
    } catch (thrown) {
      const error = toServiceError(thrown);
      if (error.status >= 500) deps.log.error({ err: thrown, requestId, endpoint }, "a call was not admitted");
      // Before the caller hears of it: what is mended may come at once, with the same key.
      if (unused !== undefined) await releaseKey(deps, unused, requestId);
      if (error instanceof RateLimitReached) res.set(limitHeaders(error.rateLimits));
      if (!res.headersSent) answerError(res, error, codec.error(error, requestId));
    } finally {
      submitted();
    }
  };
}

/** What a worker has to know of a call that is answered in text. */
function asText({ format, framing, passed }: PaidRoute, req: Request, call: ParsedCall) {
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
): Partial<Payer> & Pick<Payer, "caller"> {
  if (buybackToken !== undefined)
    throw invalidValue("buyback_token", "buyback_token: calls by API key have their account's; leave it out.");
  const key = route.isFree || stream ? undefined : req.get("idempotency-key");
  return key === undefined ? { caller } : { caller, replay: { key, hash: hashOf(route, req, body) } };
}

/**
 * Of all that decides the answer: the headers that are passed on choose among the provider's behaviours. Nothing in a
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
  { account }: Caller,
  replay: ReplayAsk,
): Promise<Claimed> {
  const { requestId, arrivedAt } = localsOf(res);
  const ask = { ...replay, account, requestId, instance: deps.instance, pool: jobCatalog[job].pool };
  return claimKey(deps, ask, { answerBy: arrivedAt + deps.syncTimeoutMs, res });
}

function answerAgain(res: Response, { requestId, answer }: Extract<Claimed, { kind: "answered" }>): void {
  if (!("text" in answer)) throw new TypeError("an upload's answer under the key of a call");
  markReplayed(res, requestId);
  res.set({ ...answer.headers, "x-xm-cost-usd": formatUsd(answer.costNanoUsd) });
  answerJson(res.status(200), answer.text);
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
