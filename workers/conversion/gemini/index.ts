/**
 * Google's Gemini format (generateContent, streamGenerateContent, countTokens), each way to and from chat, and past it.
 * Sources: the provider's public API reference and guides, the types of its client; wire-details ("Streams", "Errors",
 * "What crosses"); its OpenAI-compatible interface for `extra_content.google` and `extra_body.google`.
 *
 *   geminiCodec, geminiCountCodec     the API's face; the model and whether it streams come from the path
 *   geminiDialect                     the worker's face, its streams as server-sent events
 *   geminiArrayDialect                the same for a caller who did not ask for `alt=sse`: a stream is one JSON array
 *   countedRequest, countAnswer       what a countTokens body asks about, and its answer
 *
 * The provider reads fields under two names each (`maxOutputTokens`, `max_output_tokens`); errors name the first. Neither
 * what `fromChatRequest` nor what `native.prepare` returns has a `model`: it goes into the path. Usage in chat shape:
 * `prompt_tokens` has the cached tokens and those of tools in it, `completion_tokens` the thoughts.
 */
import type { FormatConverter } from "../converter.ts";
import { fromChat, toChatAnswer } from "./answer.ts";
import { callerFields } from "./caller-field.ts";
import { arrayFraming, type Framing, sseFraming } from "./framing.ts";
import { fromChatRequest } from "./from-chat-request.ts";
import { native } from "./native.ts";
import { streamFromChat } from "./stream-from-chat.ts";
import { streamToChat } from "./stream-to-chat.ts";
import { toChat } from "./to-chat.ts";
import { placeGeminiUploads } from "./uploads.ts";

const dialect = (framing: () => Framing): FormatConverter => ({
  resolveUploads: placeGeminiUploads,
  requestToChat: toChat,
  callerFields,
  responseFromChat: fromChat,
  streamFromChat: streamFromChat(framing),
  requestFromChat: fromChatRequest,
  responseToChat: toChatAnswer,
  streamToChat,
  native: native(framing),
});

export const geminiConverter: FormatConverter = dialect(sseFraming);
export const geminiArrayConverter: FormatConverter = dialect(arrayFraming);
