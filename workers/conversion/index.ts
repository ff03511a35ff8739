/**
 * Conversion between the API formats, with chat-completions as the hub: one `FormatConverter` for each format, listed in
 * `converters`. Also completes the responses of calls that are not converted. Pure: no I/O, no clock, no state beyond that
 * of one stream. Requests that cannot be converted throw `invalidValue` naming the field; incomplete answers throw
 * `upstreamError`.
 */
import { invalidValue, ServiceError } from "#errors";
import type { Format } from "#formats";
import { type JsonObject, list, object } from "#json";
import { limitCacheControl } from "./cache-control.ts";
import { chatConverter, toUpstream } from "./chat/index.ts";
import { RepeatedChunk } from "./chat/repeated-chunk.ts";
import { type ConvertedRequest, type FormatConverter, ignoredParams, type UpstreamTarget } from "./converter.ts";
import { mapFinishReasonToChat as fromGemini } from "./gemini/convert-response-to-chat.ts";
import { geminiConverter } from "./gemini/index.ts";
import { mapStopReason } from "./messages/convert-response-to-chat.ts";
import { messagesConverter } from "./messages/index.ts";
import { mapFinishReasonToChat as fromResponses } from "./responses/convert-response-to-chat.ts";
import { responsesConverter } from "./responses/index.ts";

export { limitCacheControl } from "./cache-control.ts";
export { shortId } from "./chat/adapt-messages.ts";
export { completionsConverter } from "./chat/completions.ts";
export { chunkParser, failureOfChoices, normalizeAnswer } from "./chat/index.ts";
export { chunkJoiner } from "./chat/whole-answers.ts";
export {
  type CacheLifetime,
  type FormatConverter,
  ignoredParams,
  type ResolvedUpload,
  type ResponseIdentity,
  type StoreState,
  type StreamWriter,
  type TokenEstimate,
} from "./converter.ts";
export { geminiArrayConverter } from "./gemini/index.ts";
export { addCacheMarks } from "./messages/cache-marks.ts";
export { responsesFailure } from "./responses/index.ts";
export { completionTokens, promptTokens, tokenUsage } from "./usage.ts";

export const converters: Readonly<Record<Format, FormatConverter>> = {
  chat: chatConverter,
  messages: messagesConverter,
  responses: responsesConverter,
  gemini: geminiConverter,
};

/** Nested fields have other paths in the caller's format, so only the top-level field is named. */
const callerField =
  (fields: FormatConverter["callerFields"]) =>
  (chatField: string): string => {
    const [field = chatField] = /^\w+/.exec(chatField) ?? [];
    return (Object.hasOwn(fields, field) && fields[field]) || chatField;
  };

/** Returns the error; a refusal that names a chat field names the caller's field instead. */
export function withCallerFields(error: unknown, fields: FormatConverter["callerFields"]): unknown {
  if (!(error instanceof ServiceError) || error.code !== "invalid_value" || error.param === undefined) return error;
  const param = callerField(fields)(error.param);
  return param === error.param ? error : invalidValue(param, error.message.replace(error.param, param));
}

/**
 * Converts the caller's request for a provider of another format, through chat. Throws `invalidValue` naming the caller's
 * field for what changes the meaning and cannot be converted; ignored parameters also have the caller's names.
 */
export function convertRequest(
  caller: FormatConverter,
  provider: FormatConverter,
  request: JsonObject,
  target: UpstreamTarget,
): ConvertedRequest {
  const limited = limitCacheControl(request, target.cacheLifetime);
  const chat = caller.requestToChat(limited.request);
  try {
    const converted = provider.requestFromChat(toUpstream(chat.request, target), target);
    const ignored = ignoredParams();
    for (const name of [
      ...limited.ignored,
      ...chat.ignored,
      ...converted.ignored.map(callerField(caller.callerFields)),
    ])
      ignored.add(name, true);
    return { request: converted.request, ignored: ignored.names() };
  } catch (error) {
    throw withCallerFields(error, caller.callerFields);
  }
}

/** Reads why a provider's first choice ended, from its whole answer or its events, as a finish reason of chat. */
export function finishReasonReader(format: Format) {
  let hasCalls = false;

  function reasonIn(item: JsonObject): unknown {
    if (format === "chat") {
      const choices = list(item["choices"]);
      return (choices.find(({ index }) => index === 0) ?? choices[0])?.["finish_reason"];
    }
    if (format === "messages") return mapStopReason(object(item["delta"] ?? item))["finish_reason"];
    if (format === "responses") {
      const response = object(item["response"] ?? item);
      if (response["status"] !== "completed" && response["status"] !== "incomplete") return undefined;
      return fromResponses(
        response,
        list(response["output"]).some(({ type }) => type === "function_call" || type === "custom_tool_call"),
      );
    }
    const [candidate = {}] = list(item["candidates"]);
    hasCalls ||= list(object(candidate["content"])["parts"]).some((part) => "functionCall" in part);
    return fromGemini(candidate, hasCalls)["finish_reason"];
  }

  return (item: JsonObject): string | undefined => {
    // A repeated chunk is not the last one.
    const reason = item instanceof RepeatedChunk ? undefined : reasonIn(item);
    return typeof reason === "string" && reason !== "" ? reason.slice(0, 40) : undefined;
  };
}
