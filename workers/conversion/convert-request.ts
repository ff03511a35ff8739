import { invalidValue, ServiceError } from "#errors";
import type { JsonObject } from "#formats";
import { toUpstream } from "./chat/index.ts";
import type { ConvertedRequest, FormatConverter, UpstreamTarget } from "./converter.ts";
import { ignoredParams } from "./ignored-params.ts";

/** The refusal of a chat field as one of the caller's own field. */
function inOwnWords(error: unknown, caller: FormatConverter): unknown {
  if (!(error instanceof ServiceError) || error.code !== "invalid_value" || error.param === undefined) return error;
  const param = caller.callerField(error.param);
  return param === error.param ? error : invalidValue(param, error.message.replace(error.param, param));
}

/**
 * The caller's request for a provider of another format, by way of chat. Throws `invalidValue` naming the caller's field
 * for what changes the meaning and cannot cross; what is left out is named as the caller names it too.
 */
export function convertRequest(
  caller: FormatConverter,
  provider: FormatConverter,
  request: JsonObject,
  to: UpstreamTarget,
): ConvertedRequest {
  const chat = caller.requestToChat(request);
  try {
    const crossed = provider.requestFromChat(toUpstream(chat.request, to));
    const ignored = ignoredParams();
    for (const name of [...chat.ignored, ...crossed.ignored.map((field) => caller.callerField(field))])
      ignored.add(name, true);
    return { request: crossed.request, ignored: ignored.names() };
  } catch (error) {
    throw inOwnWords(error, caller);
  }
}
