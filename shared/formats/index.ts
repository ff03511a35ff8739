/**
 * The formats that are spoken, each as one pure codec: no I/O, no clock, no state beyond a stream's own. The API's face of a
 * format is a `Codec`, the worker's face a `Dialect`; chat-completions is the hub that all others cross by, and `dialects`
 * has them all. Sources: the specification, part 2; wire-details ("Streams", "Errors", "What crosses"); OpenAI's public API
 * reference for chat completions and embeddings; those of the other providers in the folders' own index.ts.
 */

export { canonicalJson } from "./canonical.ts";
export { chatCodec, chatRequest } from "./chat/codec.ts";
export {
  capOf,
  commonFields,
  isDocumented,
  isEmpty,
  isStandardTier,
  isTextOnly,
  searchFields,
  stopSequencesOf,
} from "./chat/fields.ts";
export { chatUpload } from "./chat/uploads.ts";
export { isDeeper } from "./depth.ts";
export { type Dimensions, dimensionsOf } from "./dimensions.ts";
export { embeddingsCodec, embeddingsRequest, finishEmbeddings } from "./embeddings.ts";
export { commonError } from "./error-body.ts";
export {
  checkLink,
  countAnswer,
  countedRequest,
  formedRequest,
  formedSchema,
  formedThinking,
  geminiCodec,
  geminiCountCodec,
  geminiRequest,
  geminiUpload,
  kindOf,
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
export { byteLength, type JsonObject, object } from "./loose.ts";
export { audioFormat, audioMime, inlineOf, mimeOfLink } from "./media.ts";
export {
  countTokensCodec,
  countTokensRequest,
  messagesCodec,
  messagesHeaders,
  messagesRequest,
  messagesUpload,
} from "./messages/index.ts";
export {
  contentText,
  count,
  firstChoice,
  given,
  isCount,
  isSet,
  list,
  number,
  reasoningText,
  strings,
  text,
  writeJson,
} from "./read.ts";
export {
  errorEvent,
  eventText,
  logprobsInclude,
  responsesCodec,
  responsesRequest,
  responsesUpload,
} from "./responses/index.ts";
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
export { findUploads, isUploadId } from "./uploads.ts";
export { completionTokens, estimateTokens, outputBytes, promptTokens, type TokenUsage, tokenUsage } from "./usage.ts";
