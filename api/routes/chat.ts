import { chatCodec, chatRequest, completionsCodec, completionsRequest } from "#formats";
import { refTo, requestOf } from "../http/openapi/formats/index.ts";
import { storedRoutedHeaders } from "../http/openapi/headers.ts";
import { paid } from "./paid-operation.ts";

export const chat = {
  name: "Chat",
  description: "Text in OpenAI's chat-completions format, by every chat model",
  routes: [
    paid(
      { endpoint: "/v1/chat/completions", job: "chat", codec: chatCodec, format: "chat" },
      {
        operationId: "createChatCompletion",
        summary: "Chat, as JSON or as a stream",
        body: requestOf("ChatRequest", chatRequest, "More fields are allowed: they are the model's own"),
        okOrEvents: [
          "The answer; with `stream: true` server-sent events whose last chunk carries usage",
          refTo("ChatResponse"),
          storedRoutedHeaders,
        ],
        event: refTo("ChatChunk"),
      },
    ),
    paid(
      { endpoint: "/v1/completions", job: "chat", codec: completionsCodec, format: "chat", framing: "completions" },
      {
        operationId: "createCompletion",
        summary: "OpenAI's legacy completions, by every chat model: the prompt becomes the message of a user",
        body: completionsRequest,
        okOrEvents: [
          "The text; with `stream: true` server-sent events whose last one carries usage",
          refTo("CompletionResponse"),
          storedRoutedHeaders,
        ],
        event: refTo("CompletionChunk"),
      },
    ),
  ],
};
