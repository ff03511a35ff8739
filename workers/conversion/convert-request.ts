import { invalidValue, ServiceError } from "#errors";
import type { JsonObject } from "#formats";
import { toUpstream } from "./chat/index.ts";
import { type ConvertedRequest, type FormatConverter, ignoredParams, type UpstreamTarget } from "./converter.ts";

/**
 * Converts the caller's request for a provider of another format, through chat. Throws `invalidValue` naming the caller's
 * field for what changes the meaning and cannot be converted; ignored parameters have the caller's names, too.
 */
export function convertRequest(
  caller: FormatConverter,
  provider: FormatConverter,
  request: JsonObject,
  target: UpstreamTarget,
): ConvertedRequest {
  // Nested fields have other paths in the caller's format, so that only the top-level field is named.
  const callerField = (chatField: string): string => {
    const [field = chatField] = /^\w+/.exec(chatField) ?? [];
    return (Object.hasOwn(caller.callerFields, field) && caller.callerFields[field]) || chatField;
  };
  const chat = caller.requestToChat(request);
  try {
    const converted = provider.requestFromChat(toUpstream(chat.request, target));
    const ignored = ignoredParams();
    for (const name of [...chat.ignored, ...converted.ignored.map(callerField)]) ignored.add(name, true);
    return { request: converted.request, ignored: ignored.names() };
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== "invalid_value" || error.param === undefined) throw error;
    const param = callerField(error.param);
    throw param === error.param ? error : invalidValue(param, error.message.replace(error.param, param));
  }
}
