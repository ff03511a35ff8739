import type { RequestHandler } from "express";
import { toServiceError } from "#errors";
import type { Codec } from "#formats";
import { jobCatalog, type PaidJobName } from "#jobs";
import { RateLimitReached, type RateLimits } from "#keys";
import { type AdmissionDeps, admit } from "./admission/admit.ts";
import { authenticate } from "./admission/authenticate.ts";
import { answerError } from "./http/answer.ts";
import type { createBodyReader } from "./http/body.ts";
import { localsOf } from "./http/headers.ts";
import type { OpenCalls } from "./open-calls.ts";

export interface PaidRoute {
  readonly job: PaidJobName;
  readonly endpoint: string;
  readonly codec: Codec;
}

export interface CallDeps extends AdmissionDeps {
  readonly openCalls: OpenCalls;
  readonly readBody: ReturnType<typeof createBodyReader>;
  readonly instance: string;
  readonly callTimeoutMs: number;
}

/** The one way of every paid route: authenticate, read, parse, admit, submit. What follows is written by `OpenCalls`. */
export function paidRoute(deps: CallDeps, { job, endpoint, codec }: PaidRoute): RequestHandler {
  const { pool } = jobCatalog[job];
  return async (req, res) => {
    const { requestId, arrivedAt } = localsOf(res);
    let submitted = () => {};
    try {
      submitted = deps.openCalls.arrive();
      const caller = await authenticate(deps.keys, req);
      const body = await deps.readBody(req, res);
      const call = codec.parse(body.value, body.bytes);
      const deadlineAt = arrivedAt + deps.callTimeoutMs;
      const admitted = await admit(deps, { requestId, caller, call, endpoint, pool, arrivedAt, deadlineAt });
      res.set(limitHeaders(admitted.limits));
      await deps.openCalls.submit({
        job,
        codec,
        caller,
        res,
        body,
        takenTokens: admitted.takenTokens,
        payload: {
          v: 1,
          requestId,
          account: caller.account,
          keyId: caller.keyId,
          tier: caller.tier,
          endpoint,
          model: admitted.model.id,
          stream: call.stream,
          held: String(admitted.heldNanoUsd),
          outputCap: admitted.outputCap,
          inputEstimate: admitted.inputEstimate,
          replyTo: deps.instance,
          acceptedAt: arrivedAt,
          deadlineAt,
        },
      });
    } catch (thrown) {
      const error = toServiceError(thrown);
      if (error.status >= 500) deps.log.error({ err: thrown, requestId, endpoint }, "a call was not admitted");
      if (error instanceof RateLimitReached) res.set(limitHeaders(error.rateLimits));
      if (!res.headersSent) answerError(res, error, codec.error(error, requestId));
    } finally {
      submitted();
    }
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
