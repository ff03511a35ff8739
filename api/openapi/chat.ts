import { z } from "zod";
import { chatRequest, completionsRequest } from "#formats";
import { storedCallHeaders } from "./headers.ts";
import { operation, storing, unixSeconds } from "./operation.ts";
import { usage } from "./usage.ts";

const chatResponse = z
  .looseObject({
    id: z.string(),
    object: z.literal("chat.completion"),
    model: z.string(),
    choices: z.array(
      z.looseObject({
        index: z.int(),
        message: chatRequest.shape.messages.element,
        finish_reason: z.string().nullable(),
      }),
    ),
    usage,
  })
  .meta({ id: "ChatResponse" });

const completion = z
  .object({
    id: z.string(),
    object: z.literal("text_completion"),
    created: unixSeconds,
    model: z.string(),
    choices: z.array(
      z.object({ text: z.string(), index: z.int(), logprobs: z.null(), finish_reason: z.string().nullable() }),
    ),
    usage,
  })
  .meta({ id: "CompletionResponse" });

export const chat = {
  "POST /v1/chat/completions": operation("createChatCompletion", "Chat, as JSON or as a stream", {
    ...storing,
    body: chatRequest,
    okOrEvents: [
      "The answer; with `stream: true` server-sent events whose last chunk carries usage",
      chatResponse,
      storedCallHeaders,
    ],
  }),
  "POST /v1/completions": operation(
    "createCompletion",
    "OpenAI's legacy completions, by every chat model: the prompt becomes the message of a user",
    {
      ...storing,
      body: completionsRequest,
      okOrEvents: [
        "The text; with `stream: true` server-sent events whose last one carries usage",
        completion,
        storedCallHeaders,
      ],
    },
  ),
};
