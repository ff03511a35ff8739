/**
 * The API's side of each format: a `Codec` parses a request, measures it for the bound of its cost, and renders errors and
 * pings. Conversion between formats is in `workers/conversion`. Pure: no I/O and no clock. Sizes are in bytes; parsing
 * throws `invalidValue` naming the first field at fault.
 *
 * Sources: docs/api/inference.md; docs/api/wire-details.md ("Streams", "Errors", "What crosses"); OpenAI's public API
 * reference for chat completions and embeddings; for the other formats see their index.ts.
 */

export { chatCodec, chatRequest, chatUpload, searchFields } from "./chat/codec.ts";
export { embeddingsCodec, embeddingsRequest } from "./embeddings.ts";
export { invalidFrom } from "./errors.ts";
export { dimensionsOf } from "./file-header.ts";
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
export { imageRequest, imagesCodec, mediaCodec, mediaRequest } from "./images.ts";
export {
  byteLength,
  canonicalJson,
  count,
  given,
  isCount,
  isDeeper,
  isSet,
  type JsonObject,
  list,
  number,
  object,
  strings,
  text,
  writeJson,
} from "./json.ts";
export { estimateTokens, outputBytes } from "./measure.ts";
export { audioFormat, audioMime, inlineOf, mimeOfLink } from "./media-types.ts";
export {
  countTokensCodec,
  countTokensRequest,
  messagesCodec,
  messagesHeaders,
  messagesRequest,
  messagesUpload,
} from "./messages/index.ts";
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
  type Dimensions,
  type Feature,
  type Format,
  formats,
  type MediaPart,
  type ModelInput,
  type ParsedCall,
  type UploadRef,
} from "./types.ts";
export { findUploads, isUploadId } from "./uploads.ts";
