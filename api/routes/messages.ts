import { Router } from "express";
import { countTokensCodec, messagesCodec, messagesHeaders } from "#formats";
import { methodNotAllowed } from "../http/errors.ts";
import { localsOf } from "../http/headers.ts";
import { type CallDeps, paidRoute } from "../paid-call.ts";
import type { PaidRoute } from "../paid-route.ts";

const messages: PaidRoute = {
  job: "chat",
  endpoint: "/v1/messages",
  codec: messagesCodec,
  format: "messages",
  passed: messagesHeaders,
};

const countTokens: PaidRoute = {
  job: "count",
  endpoint: "/v1/messages/count_tokens",
  codec: countTokensCodec,
  format: "messages",
  passed: messagesHeaders,
  isFree: true,
};

/** Anthropic's Messages format, mounted at `/v1/messages`. */
export function messagesRoutes(deps: CallDeps): Router {
  const router = Router();
  router.use((_req, res, next) => {
    res.setHeader("request-id", localsOf(res).requestId);
    next();
  });
  router.post("/", paidRoute(deps, messages));
  router.post("/count_tokens", paidRoute(deps, countTokens));
  router.all(["/", "/count_tokens"], methodNotAllowed("POST"));
  return router;
}
