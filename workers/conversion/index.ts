/**
 * Conversion between the API formats, with chat-completions as the hub: one `FormatConverter` for each format, listed in
 * `converters`. Also completes the responses of calls that are not converted. Pure: no I/O, no clock, no state beyond that
 * of one stream. Requests that cannot be converted throw `invalidValue` naming the field; incomplete answers throw
 * `upstreamError`.
 */
import type { Format } from "#formats";
import { chatConverter } from "./chat/index.ts";
import type { FormatConverter } from "./converter.ts";
import { geminiConverter } from "./gemini/index.ts";
import { messagesConverter } from "./messages/index.ts";
import { responsesConverter } from "./responses/index.ts";

export { withoutUnknown } from "./chat/index.ts";
export { convertRequest } from "./convert-request.ts";
export type { FormatConverter, ResolvedUpload, ResponseIdentity, StreamWriter, TokenEstimate } from "./converter.ts";
export { completeEmbeddings } from "./embeddings-response.ts";
export { geminiArrayConverter } from "./gemini/index.ts";
export { type GeneratedFile, imageResponse, mediaResponse } from "./media-responses.ts";
export { responsesFailure } from "./responses/index.ts";
export { completionTokens, promptTokens, tokenUsage } from "./usage.ts";

export const converters: Readonly<Record<Format, FormatConverter>> = {
  chat: chatConverter,
  messages: messagesConverter,
  responses: responsesConverter,
  gemini: geminiConverter,
};
