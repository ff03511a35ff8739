/**
 * Conversion of Google's Gemini format (generateContent, streamGenerateContent, countTokens) to and from chat-completions.
 * Sources: Google's API reference and guides; its OpenAI-compatible interface for `extra_content.google` and
 * `extra_body.google`; docs/api/wire-details.md.
 *
 *   geminiConverter        streams are server-sent events
 *   geminiArrayConverter   the same for a caller without `alt=sse`: a stream is one JSON array
 *
 * Requests may use either spelling of a field (`maxOutputTokens`, `max_output_tokens`); errors name the first. Requests for
 * the provider have no `model`, because it is part of the path. Usage in chat shape: `prompt_tokens` includes cached tokens
 * and tool prompts, `completion_tokens` includes thoughts. Throws `invalidValue` naming the field.
 */
import type { FormatConverter } from "../converter.ts";
import { convertRequestFromChat } from "./convert-request-from-chat.ts";
import { callerFields, convertRequestToChat } from "./convert-request-to-chat.ts";
import { convertResponseFromChat, convertStreamFromChat } from "./convert-response-from-chat.ts";
import { convertResponseToChat, convertStreamToChat } from "./convert-response-to-chat.ts";
import { jsonArray, native, resolveUploads, type StreamFraming, serverSentEvents } from "./native.ts";

const createConverter = (framing: StreamFraming): FormatConverter => ({
  resolveUploads,
  requestToChat: convertRequestToChat,
  callerFields,
  responseFromChat: convertResponseFromChat,
  streamFromChat: convertStreamFromChat(framing),
  requestFromChat: convertRequestFromChat,
  responseToChat: convertResponseToChat,
  streamToChat: convertStreamToChat,
  native: native(framing),
});

export const geminiConverter = createConverter(serverSentEvents);
export const geminiArrayConverter = createConverter(jsonArray);
