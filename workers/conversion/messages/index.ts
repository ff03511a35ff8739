/**
 * Converts Anthropic's Messages format to chat and back, and passes native calls through. Sources: the provider's public API
 * reference and the types of its client; docs/api/wire-details.md ("Streams", "Error types by format", "Conversion");
 * OpenRouter's documentation of `reasoning_details`.
 *
 * Usage in chat shape: `prompt_tokens` includes everything; `cached_tokens` and `cache_write_tokens` in
 * `prompt_tokens_details` are disjoint parts of it, as in OpenRouter's usage; `cache_write_1h_tokens` is the part of the
 * latter with that lifetime. Throws `invalidValue`.
 */
import type { FormatConverter } from "../converter.ts";
import { convertRequestFromChat } from "./convert-request-from-chat.ts";
import { convertRequestToChat } from "./convert-request-to-chat.ts";
import { convertResponseFromChat } from "./convert-response-from-chat.ts";
import { convertResponseToChat, convertStreamToChat } from "./convert-response-to-chat.ts";
import { convertStreamFromChat } from "./convert-stream-from-chat.ts";
import { native, resolveUploads } from "./native.ts";

export const messagesConverter: FormatConverter = {
  resolveUploads,
  requestToChat: convertRequestToChat,
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
  responseFromChat: convertResponseFromChat,
  streamFromChat: convertStreamFromChat,
  requestFromChat: convertRequestFromChat,
  responseToChat: convertResponseToChat,
  streamToChat: convertStreamToChat,
  native,
};
