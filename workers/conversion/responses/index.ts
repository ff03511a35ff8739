/**
 * OpenAI's Responses format, both ways. Source: OpenAI's public API reference for responses and its streaming events, the
 * types of its client, and wire-details ("Streams", "Responses stream", "What crosses, what is dropped, what is refused").
 *
 * Towards the caller: `responsesCodec` for the API; `responsesDialect` for workers, whose streams count their events from
 * 0 and can tell of a failure in the middle by `fail`. Item ids are made of the request's id and the item's place, so an
 * item has the same id wherever it is named, streamed or not. What the model says of its reasoning is one summary.
 * Towards the provider: nothing is ever kept (`store: false`), and what would be kept is refused or left out.
 * Throws `invalidValue` naming the field.
 */
import type { FormatConverter } from "../converter.ts";
import { callerFields } from "./caller-field.ts";
import { fromChat } from "./from-chat.ts";
import { fromChatRequest } from "./from-chat-request.ts";
import { native } from "./native.ts";
import { streamFromChat } from "./stream-from-chat.ts";
import { streamToChat } from "./stream-to-chat.ts";
import { toChat } from "./to-chat.ts";
import { toChatAnswer } from "./to-chat-answer.ts";
import { placeResponsesUploads } from "./uploads.ts";

export { responsesFailure } from "./failure.ts";

export const responsesConverter: FormatConverter = {
  resolveUploads: placeResponsesUploads,
  requestToChat: toChat,
  callerFields,
  responseFromChat: fromChat,
  streamFromChat,
  requestFromChat: fromChatRequest,
  responseToChat: toChatAnswer,
  streamToChat,
  native,
};
