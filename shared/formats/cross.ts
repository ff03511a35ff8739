import { invalidValue, ServiceError } from "#errors";
import { toUpstream } from "./chat-dialect.ts";
import type { Crossed, Dialect, To } from "./dialect.ts";
import { leftOut } from "./left-out.ts";
import type { Loose } from "./loose.ts";

/** The refusal of a chat field as one of the caller's own field. */
function inOwnWords(error: unknown, caller: Dialect): unknown {
  if (!(error instanceof ServiceError) || error.code !== "invalid_value" || error.param === undefined) return error;
  const param = caller.ownField(error.param);
  return param === error.param ? error : invalidValue(param, error.message.replace(error.param, param));
}

/**
 * The caller's request for a maker of another format, by way of chat. Throws `invalidValue` naming the caller's field
 * for what changes the meaning and cannot cross; what is left out is named as the caller names it too.
 */
export function crossRequest(caller: Dialect, maker: Dialect, request: Loose, to: To): Crossed {
  const chat = caller.toChat(request);
  try {
    const crossed = maker.fromChatRequest(toUpstream(chat.request, to));
    const ignored = leftOut();
    for (const name of [...chat.ignored, ...crossed.ignored.map((field) => caller.ownField(field))])
      ignored.add(name, true);
    return { request: crossed.request, ignored: ignored.names() };
  } catch (error) {
    throw inOwnWords(error, caller);
  }
}
