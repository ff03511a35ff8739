/**
 * The formats that callers speak, each as one pure codec: no I/O, no clock, no state beyond a stream's own.
 * Chat-completions is the hub. Sources: the specification, part 2; wire-details ("Streams", "Errors"); OpenAI's public
 * API reference for chat completions and embeddings.
 */
export { chatCodec, chatRequest, prepareChat } from "./chat.ts";
export { chatStream, completeChat, outputBytes } from "./chat-answer.ts";
export { embeddingsCodec, embeddingsRequest, finishEmbeddings } from "./embeddings.ts";
export { commonError } from "./error-body.ts";
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
export type { CallSize, Codec, Feature, ModelInput, ParsedCall, UploadRef } from "./types.ts";
export { chatUploads, findUploads, isUploadId, type Placed, placeChatUploads } from "./uploads.ts";
export { estimateTokens, type TokenUsage, tokenUsage } from "./usage.ts";
