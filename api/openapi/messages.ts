import { z } from "zod";
import { countTokensRequest, messagesRequest } from "#formats";
import { countHeaders, storedNativeHeaders } from "./headers.ts";
import { operation, paidErrors, storing, typed } from "./operation.ts";

const messagesError = z
  .object({
    type: z.literal("error"),
    error: z.object({ type: z.string(), message: z.string() }),
    request_id: z.string(),
  })
  .meta({ id: "MessagesError" });

const message = z
  .looseObject({
    id: z.string(),
    type: z.literal("message"),
    role: z.literal("assistant"),
    model: z.string(),
    content: typed,
    stop_reason: z.string().nullable(),
    usage: z.looseObject({ input_tokens: z.int(), output_tokens: z.int() }),
  })
  .meta({ id: "MessagesAnswer" });

const native = {
  security: [{ anthropicKey: [] }, { bearer: [] }],
  errors: paidErrors,
  errorBody: messagesError,
};

export const messages = {
  "POST /v1/messages": operation(
    "createMessage",
    "Anthropic's Messages format, for that provider's models unless the operator opens it to all",
    {
      ...native,
      ...storing,
      body: messagesRequest,
      okOrEvents: ["The message, or its events", message, storedNativeHeaders],
    },
  ),
  "POST /v1/messages/count_tokens": operation("countMessageTokens", "The tokens of a message; free", {
    ...native,
    body: countTokensRequest,
    ok: ["The count", z.object({ input_tokens: z.int() }), countHeaders],
  }),
};
