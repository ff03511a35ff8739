import { z } from "zod";
import { completionsRequest } from "#formats";
import { storedRoutedHeaders } from "../http/openapi/headers.ts";
import { type Group, operation, storing, unixSeconds } from "../http/openapi/operation.ts";
import { usage } from "../http/openapi/usage.ts";
import { chatChunk, chatResponse, fullChatRequest } from "./chat-schemas.ts";

const textChoice = z.looseObject({
  text: z.string(),
  index: z.int(),
  logprobs: z.null(),
  finish_reason: z.string().nullable(),
});

const completion = z
  .looseObject({
    id: z.string(),
    object: z.literal("text_completion"),
    created: unixSeconds,
    model: z.string(),
    choices: z.array(textChoice),
    usage,
  })
  .meta({ id: "CompletionResponse" });

const completionChunk = completion
  .extend({ usage: usage.nullish() })
  .meta({ id: "CompletionChunk", description: "The data of one event; after the last comes `[DONE]`" });

const weatherTool = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather in a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};

/** A red PNG of one pixel. */
const pixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

export const chat: Group = {
  name: "Chat",
  description: "Text in OpenAI's chat-completions format, by every chat model",
  operations: {
    "POST /v1/chat/completions": operation("createChatCompletion", "Chat, as JSON or as a stream", {
      ...storing,
      body: fullChatRequest,
      examples: {
        text: {
          summary: "A question",
          value: { model: "local/chat", messages: [{ role: "user", content: "Say hello." }] },
        },
        stream: {
          summary: "A stream",
          value: { model: "local/chat", messages: [{ role: "user", content: "Say hello." }], stream: true },
        },
        image: {
          summary: "A question about an image",
          value: {
            model: "local/chat",
            messages: [
              {
                role: "user",
                content: [
                  { type: "text", text: "What is this?" },
                  { type: "image_url", image_url: { url: pixel } },
                ],
              },
            ],
          },
        },
        tools: {
          summary: "A tool that the model must call",
          value: {
            model: "local/chat",
            messages: [{ role: "user", content: "How is the weather in Oslo?" }],
            tools: [weatherTool],
            tool_choice: "required",
          },
        },
        toolResult: {
          summary: "The result of a tool",
          value: {
            model: "local/chat",
            messages: [
              { role: "user", content: "How is the weather in Oslo?" },
              {
                role: "assistant",
                content: null,
                tool_calls: [
                  { id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } },
                ],
              },
              { role: "tool", tool_call_id: "call_1", content: "Rain, 8 degrees" },
            ],
            tools: [weatherTool],
          },
        },
        json: {
          summary: "An answer by a JSON Schema",
          value: {
            model: "local/chat",
            messages: [{ role: "user", content: "Name a city." }],
            response_format: {
              type: "json_schema",
              json_schema: {
                name: "city",
                schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
              },
            },
          },
        },
      },
      okOrEvents: [
        "The answer; with `stream: true` server-sent events whose last chunk carries usage",
        chatResponse,
        storedRoutedHeaders,
      ],
      event: chatChunk,
    }),
    "POST /v1/completions": operation(
      "createCompletion",
      "OpenAI's legacy completions, by every chat model: the prompt becomes the message of a user",
      {
        ...storing,
        body: completionsRequest,
        examples: {
          text: { summary: "A prompt", value: { model: "local/chat", prompt: "Say hello.", max_tokens: 50 } },
          stream: { summary: "A stream", value: { model: "local/chat", prompt: "Say hello.", stream: true } },
        },
        okOrEvents: [
          "The text; with `stream: true` server-sent events whose last one carries usage",
          completion,
          storedRoutedHeaders,
        ],
        event: completionChunk,
      },
    ),
  },
};
