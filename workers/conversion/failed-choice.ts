import { type JsonObject, object, text } from "#json";

const maxCharacters = 1000;

/**
 * The end of a choice for which the provider gave no usable answer, such as a malformed tool call. `finish_reason: "error"`
 * and `error` are OpenRouter's extension of chat (https://openrouter.ai/docs/api-reference/overview): agents treat every
 * other finish reason as success.
 */
export const failedChoice = (message: string): JsonObject => ({
  finish_reason: "error",
  error: { code: 502, message: message.slice(0, maxCharacters) },
});

/** The reason why a choice failed. Returns undefined if it did not. */
export function failureOf({ finish_reason, error }: JsonObject): string | undefined {
  if (finish_reason !== "error") return undefined;
  return text(object(error)["message"]).slice(0, maxCharacters) || "The model gave no usable answer.";
}
