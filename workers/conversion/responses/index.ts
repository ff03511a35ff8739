/**
 * Conversion of OpenAI's Responses format to and from chat-completions. Sources: OpenAI's API reference for responses and
 * their streaming events; docs/api/wire-details.md.
 *
 * Towards the caller: streams number their events from 0, and report a failure midway with `fail`. Item ids are made from
 * the request's id and the item's position, so that an item has the same id in a stream and in a whole response. Reasoning
 * is one summary. In chat the caller's tools are functions (caller-tools.ts). Towards the provider: `store` is false, and
 * requests that need stored state are refused or lose that part. Throws `invalidValue` naming the field.
 */
import type { FormatConverter } from "../converter.ts";
import { convertRequestFromChat } from "./convert-request-from-chat.ts";
import { callerFields, convertRequestToChat } from "./convert-request-to-chat.ts";
import { convertResponseFromChat, convertStreamFromChat } from "./convert-response-from-chat.ts";
import { convertResponseToChat, convertStreamToChat } from "./convert-response-to-chat.ts";
import { native, resolveUploads } from "./native.ts";

export { responsesFailure } from "./convert-response-to-chat.ts";

export const responsesConverter: FormatConverter = {
  resolveUploads,
  requestToChat: convertRequestToChat,
  callerFields,
  responseFromChat: convertResponseFromChat,
  streamFromChat: convertStreamFromChat,
  requestFromChat: convertRequestFromChat,
  responseToChat: convertResponseToChat,
  streamToChat: convertStreamToChat,
  native,
};
