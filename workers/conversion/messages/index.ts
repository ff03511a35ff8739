/**
 * Anthropic's Messages format, each way to and from chat, and past it. Sources: the provider's public API reference and the
 * types of its client; wire-details ("Streams", "Errors", "What crosses"); OpenRouter's documentation for
 * `reasoning_details`.
 *
 *   messagesCodec, countTokensCodec   the API's face of POST /v1/messages and of its count_tokens
 *   messagesDialect                   the worker's face
 *
 * Usage in chat shape: `prompt_tokens` has everything in it; of `prompt_tokens_details`, `cached_tokens`,
 * `cache_write_tokens` (kept 5 minutes) and `cache_write_1h_tokens` are parts of it, and none is in another.
 */
import type { FormatConverter } from "../converter.ts";
import { fromChat, toChatAnswer } from "./answer.ts";
import { fromChatRequest } from "./from-chat-request.ts";
import { native } from "./native.ts";
import { streamFromChat } from "./stream-from-chat.ts";
import { streamToChat } from "./stream-to-chat.ts";
import { toChat } from "./to-chat.ts";
import { placeMessagesUploads } from "./uploads.ts";

export const messagesConverter: FormatConverter = {
  resolveUploads: placeMessagesUploads,
  requestToChat: toChat,
  callerFields: {
    stop: "stop_sequences",
    tools: "tools",
    tool_choice: "tool_choice",
    parallel_tool_calls: "tool_choice.disable_parallel_tool_use",
    response_format: "output_config.format",
    reasoning_effort: "thinking",
    messages: "messages",
    max_completion_tokens: "max_tokens",
  },
  responseFromChat: fromChat,
  streamFromChat,
  requestFromChat: fromChatRequest,
  responseToChat: toChatAnswer,
  streamToChat,
  native,
};
