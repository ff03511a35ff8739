/**
 * Conversion between the API formats, with chat-completions as the hub: one `Dialect` for each format, by the names in
 * `dialects`. Pure: no I/O, no clock, no state beyond that of one stream.
 */
import type { Format } from "#formats";
import { chatConverter } from "./chat/index.ts";
import type { FormatConverter } from "./converter.ts";
import { geminiConverter } from "./gemini/index.ts";
import { messagesConverter } from "./messages/index.ts";
import { responsesConverter } from "./responses/index.ts";

export { withoutUnknown } from "./chat/index.ts";
export { convertRequest } from "./convert-request.ts";
export type {
  FormatConverter,
  ResolvedUpload,
  ResponseIdentity,
  StreamWriter,
  TokenEstimate,
} from "./converter.ts";
export { geminiArrayConverter } from "./gemini/index.ts";
export { responsesFailure } from "./responses/index.ts";

export const converters: Readonly<Record<Format, FormatConverter>> = {
  chat: chatConverter,
  messages: messagesConverter,
  responses: responsesConverter,
  gemini: geminiConverter,
};
