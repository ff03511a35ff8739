import { type Loose, object } from "../loose.ts";
import { text } from "../read.ts";

/**
 * The error that an event, or a whole answer, of the maker stands for: `{message, code?, param?, type?}`. Error events
 * come flat, as the maker's reference has them, and nested, as the maker sends them.
 */
export function responsesFailure(item: Loose): Loose | undefined {
  if (item["type"] === "error") return errorOf(object(item["error"] ?? item));
  const response = item["type"] === "response.failed" ? object(item["response"]) : item;
  const { status, error } = response;
  return status === "failed" || status === "cancelled" ? errorOf(object(error)) : undefined;
}

function errorOf({ code, message, param, type }: Loose): Loose {
  return {
    message: text(message) || "The model failed.",
    ...(text(code) && { code }),
    ...(text(param) && { param }),
    ...(text(type) && type !== "error" && { type }),
  };
}
