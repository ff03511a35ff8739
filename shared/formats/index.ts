/**
 * The API's side of each format: a `Codec` parses a request, measures it for the bound of its cost, and renders errors
 * and pings. Conversion between formats is in `workers/conversion`. Pure: no I/O and no clock. Sizes are in bytes;
 * parsing throws `invalidValue` naming the first field at fault, in camelCase for Gemini.
 *
 * Sources: docs/api/inference.md; docs/api/wire-details.md ("Streams", "Error types by format", "Conversion"); the
 * public API references of OpenAI, Anthropic and Google, and the types of Anthropic's client.
 */

export {
  audioCodec,
  audioJson,
  audioType,
  type SpeechStream,
  speechCall,
  speechRequest,
  transcriptionCall,
  transcriptionRequest,
} from "./audio.ts";
export { fromTemplate, partsFrom, toTemplate } from "./cached-answer.ts";
export { chatCodec, chatMedia, chatRequest, searchFields } from "./chat/codec.ts";
export { completionsCodec, completionsRequest, completionsToChat } from "./completions.ts";
export { embeddingsCodec, embeddingsRequest } from "./embeddings.ts";
export { invalidFrom, needText, refuse, validate } from "./errors.ts";
export { dimensionsOf } from "./file-header.ts";
export { ofForm } from "./form-fields.ts";
export { countedRequest, geminiCodec, geminiCountCodec } from "./gemini/codec.ts";
export {
  batchEmbedContentsRequest,
  embedContentRequest,
  embeddingsRequestOf,
  geminiEmbedCodec,
} from "./gemini/embed.ts";
export { formedRequest, formedSchema, formedThinking } from "./gemini/field-names.ts";
export { checkLink, geminiMedia, kindOf } from "./gemini/measure.ts";
export { geminiRequest } from "./gemini/request.ts";
export {
  fileInAddress,
  imageEditCall,
  imageEditFields,
  imageEditForm,
  imageEditRequest,
  imageVariationCall,
  imageVariationFields,
  imageVariationForm,
  imageVariationRequest,
  maxImages,
  type NamedImage,
  withImages,
} from "./image-edits.ts";
export {
  imageInput,
  imageRequest,
  imagesCodec,
  type MediaInput,
  mediaCodec,
  mediaInput,
  mediaRequest,
} from "./images.ts";
export { estimatedBytesPerToken, estimateTokens, outputBytes, ownDetails } from "./measure.ts";
export { uploadOf } from "./media-source.ts";
export { audioFormat, audioMime, inlineOf, mimeOfLink } from "./media-types.ts";
export { countTokensCodec, messagesCodec, messagesHeaders } from "./messages/codec.ts";
export { messagesMedia } from "./messages/measure.ts";
export { countTokensRequest, messagesRequest } from "./messages/request.ts";
export { moderationOf, moderationRequest, moderationsCodec } from "./moderations.ts";
export { rerankCodec, rerankOf, rerankRequest, rerankSize } from "./rerank.ts";
export {
  countEvents,
  firstEvents,
  firstWorkerEvent,
  lastEvent,
  requestIdOfResponse,
  responseIdOf,
  skipEvents,
} from "./responses/background.ts";
export { errorEvent, eventText, inputTokensCodec, responsesCodec } from "./responses/codec.ts";
export { responsesMedia } from "./responses/measure.ts";
export { newResponse, responseError } from "./responses/new-response.ts";
export { logprobsInclude, responsesRequest } from "./responses/request.ts";
export { isToolsItem, omittedTools, toolLists, webSearch } from "./responses/tools.ts";
export { parseRouted, withSessionHeader } from "./routing.ts";
export { modelOrModels, type ProviderPreferences, sessionHeader, withoutRoutingFields } from "./routing-fields.ts";
export {
  createJsonScan,
  embeddingsJsonLimits,
  type FieldList,
  type JsonLimits,
  type JsonScan,
  jsonLimits,
  unlimitedJson,
  valuesIn,
} from "./scan-json.ts";
export {
  type CallSize,
  type Codec,
  type Dimensions,
  type Feature,
  type Format,
  formats,
  type MediaPart,
  type ModelInput,
  type NamedModel,
  type ParsedCall,
  type UploadRef,
} from "./types.ts";
export { findUploads, isUploadId } from "./uploads.ts";
