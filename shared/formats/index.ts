/**
 * The formats that are spoken, each as one pure codec: no I/O, no clock, no state beyond a stream's own. The API's face of a
 * format is a `Codec`, the worker's face a `Dialect`; chat-completions is the hub that all others cross by, and `dialects`
 * has them all. Sources: the specification, part 2; wire-details ("Streams", "Errors", "What crosses"); OpenAI's public API
 * reference for chat completions and embeddings; those of the other makers in the folders' own index.ts.
 */
import { chatDialect } from "./chat-dialect.ts";
import type { Dialect } from "./dialect.ts";
import { geminiDialect } from "./gemini/index.ts";
import { messagesDialect } from "./messages/index.ts";
import { responsesDialect } from "./responses/index.ts";
import type { Format } from "./types.ts";

export { canonicalJson } from "./canonical.ts";
export { chatCodec, chatRequest } from "./chat.ts";
export { outputBytes } from "./chat-answer.ts";
export { withoutUnknown } from "./chat-dialect.ts";
export { crossRequest } from "./cross.ts";
export { isDeeper } from "./depth.ts";
export type { Dialect, Ours, StreamWriter, To, TokenEstimate } from "./dialect.ts";
export { type Dimensions, dimensionsOf } from "./dimensions.ts";
export { embeddingsCodec, embeddingsRequest, finishEmbeddings } from "./embeddings.ts";
export { commonError } from "./error-body.ts";
export {
  countAnswer,
  countedRequest,
  geminiArrayDialect,
  geminiCodec,
  geminiCountCodec,
  geminiRequest,
} from "./gemini/index.ts";
export {
  imageAnswer,
  imageRequest,
  imagesCodec,
  type MadeFile,
  mediaAnswer,
  mediaCodec,
  mediaRequest,
} from "./images.ts";
export { invalidFrom } from "./invalid.ts";
export { type Loose, object } from "./loose.ts";
export {
  countTokensCodec,
  countTokensRequest,
  messagesCodec,
  messagesHeaders,
  messagesRequest,
} from "./messages/index.ts";
export { list, text, writeJson } from "./read.ts";
export { responsesCodec, responsesFailure, responsesRequest } from "./responses/index.ts";
export {
  type CallSize,
  type Codec,
  type Feature,
  type Format,
  formats,
  type MediaPart,
  type ModelInput,
  type ParsedCall,
  type UploadRef,
} from "./types.ts";
export { findUploads, isUploadId, type Placed } from "./uploads.ts";
export { completionTokens, estimateTokens, promptTokens, type TokenUsage, tokenUsage } from "./usage.ts";

export const dialects: Readonly<Record<Format, Dialect>> = {
  chat: chatDialect,
  messages: messagesDialect,
  responses: responsesDialect,
  gemini: geminiDialect,
};
