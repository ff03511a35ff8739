import { chatCodec, chatRequest, completionsCodec, completionsRequest } from "#formats";
import { refTo, requestOf } from "../http/openapi/formats/index.ts";
import { storedRoutedHeaders } from "../http/openapi/headers.ts";
import { paid } from "./paid-operation.ts";

export const chat = {
  name: "Chat",
  description: "Text in OpenAI's chat-completions format, with every chat model",
  routes: [
    paid(
      { endpoint: "/v1/chat/completions", job: "chat", codec: chatCodec, format: "chat" },
      {
        operationId: "createChatCompletion",
        summary: "Create a chat completion, as JSON or as a stream",
        body: requestOf("ChatRequest", chatRequest, "Further fields are allowed as parameters of the model"),
        okOrEvents: [
          "The completion or, with `stream: true`, server-sent events whose last chunk contains the usage",
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
        summary:
          "Create a completion in OpenAI's legacy format, with every chat model; the prompt becomes a user message",
        body: completionsRequest,
        okOrEvents: [
          "The completion or, with `stream: true`, server-sent events whose last one contains the usage",
          refTo("CompletionResponse"),
          storedRoutedHeaders,
        ],
        event: refTo("CompletionChunk"),
      },
    ),
  ],
};
