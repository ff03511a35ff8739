import { type JsonObject, object, text } from "#formats";

/**
 * The error that an event, or a whole answer, of the provider stands for: `{message, code?, param?, type?}`. Error events
 * come flat, as the provider's reference has them, and nested, as the provider sends them.
 */
export function responsesFailure(item: JsonObject): JsonObject | undefined {
  if (item["type"] === "error") return errorOf(object(item["error"] ?? item));
  const response = item["type"] === "response.failed" ? object(item["response"]) : item;
  const { status, error } = response;
  return status === "failed" || status === "cancelled" ? errorOf(object(error)) : undefined;
}

function errorOf({ code, message, param, type }: JsonObject): JsonObject {
  return {
    message: text(message) || "The model failed.",
    ...(text(code) && { code }),
    ...(text(param) && { param }),
    ...(text(type) && type !== "error" && { type }),
  };
}
