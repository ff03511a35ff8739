import { Router } from "express";
import { z } from "zod";
import { countTokensCodec, countTokensRequest, messagesCodec, messagesHeaders, messagesRequest } from "#formats";
import { methodNotAllowed } from "../http/errors.ts";
import { localsOf } from "../http/headers.ts";
import { refTo, requestOf } from "../http/openapi/formats/index.ts";
import { countHeaders, messagesRequestId, storedRoutedHeaders } from "../http/openapi/headers.ts";
import { type CallDeps, paidRoute } from "../paid-call.ts";
import { paid } from "./paid-operation.ts";

/** The common part of operations in this format. */
export const native = {
  security: [{ anthropicKey: [] }, { bearer: [] }],
  errorFormat: "messages" as const,
  params: {
    header: z.object({
      "anthropic-version": z
        .string()
        .optional()
        .describe("Any value is accepted; forwarded if the provider is Anthropic"),
      "anthropic-beta": z.string().optional().describe("Forwarded if the provider is Anthropic"),
    }),
  },
};

const create = paid(
  {
    endpoint: "/v1/messages",
    job: "chat",
    codec: messagesCodec,
    format: "messages",
    passed: messagesHeaders,
    cacheable: true,
  },
  {
    ...native,
    operationId: "createMessage",
    summary: "Create a message, as JSON or as a stream",
    body: requestOf("MessagesRequest", messagesRequest),
    okOrEvents: ["The message, or its events", refTo("MessagesAnswer"), storedRoutedHeaders.extend(messagesRequestId)],
    event: refTo("MessagesEvent"),
  },
);

const countTokens = paid(
  {
    endpoint: "/v1/messages/count_tokens",
    job: "count",
    codec: countTokensCodec,
    format: "messages",
    passed: messagesHeaders,
    isFree: true,
  },
  {
    ...native,
    operationId: "countMessageTokens",
    summary: "Count the tokens of a message; free",
    body: requestOf("CountTokensRequest", countTokensRequest),
    ok: ["The count", z.object({ input_tokens: z.int() }), countHeaders.extend(messagesRequestId)],
  },
);

export const messages = {
  name: "Messages",
  description:
    "Text in Anthropic's Messages format, with Anthropic's models only, unless the operator enables it for all",
  routes: [create, countTokens],
};

/** Anthropic's Messages format, mounted at `/v1/messages`. */
export function messagesRoutes(deps: CallDeps): Router {
  const router = Router();
  router.use((_req, res, next) => {
    res.setHeader("request-id", localsOf(res).requestId);
    next();
  });
  router.post("/", paidRoute(deps, create));
  router.post("/count_tokens", paidRoute(deps, countTokens));
  router.all(["/", "/count_tokens"], methodNotAllowed("POST"));
  return router;
}
