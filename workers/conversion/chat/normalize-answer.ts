import { type JsonObject, list, object, text } from "#json";

/**
 * Finish reasons of compatible servers that OpenAI does not have: Together, Mistral, Z.ai. docs/upstreams.md has the
 * sources.
 */
const finishReasons: ReadonlyMap<unknown, string> = new Map([
  ["eos", "stop"],
  ["model_length", "length"],
  ["model_context_window_exceeded", "length"],
  ["sensitive", "content_filter"],
]);

/** Finish reasons that mean a server failure: Z.ai, Mistral. */
const failures: readonly unknown[] = ["network_error", "error"];

/** Mistral's reasoning models answer with a list of text and thinking parts; a thinking part holds a list of texts. */
function withTextContent(message: JsonObject): JsonObject {
  const { content } = message;
  if (!Array.isArray(content)) return message;
  const parts = list(content);
  const textOf = (each: readonly JsonObject[]) => each.map((part) => text(part["text"])).join("");
  const thinking = parts.filter(({ type }) => type === "thinking").map(({ thinking: inner }) => textOf(list(inner)));
  return { ...message, content: textOf(parts), ...(thinking.length > 0 && { reasoning_content: thinking.join("") }) };
}

/** The error that a failed choice of an answer or a chunk reports. Returns undefined if no choice failed. */
export const failureOfChoices = ({ choices }: JsonObject): JsonObject | undefined => {
  const failed = list(choices).find(({ finish_reason }) => failures.includes(finish_reason));
  return failed && { error: { message: `finish_reason ${text(failed["finish_reason"])}`, code: 500 } };
};

/** Normalizes the content and finish reasons of a compatible server's answer or chunk to OpenAI's. */
export function normalizeAnswer<T extends JsonObject>(answer: T, holder: "message" | "delta"): T {
  const choices = list(answer["choices"]);
  const isOdd = (choice: JsonObject) =>
    finishReasons.has(choice["finish_reason"]) || Array.isArray(object(choice[holder])["content"]);
  if (!choices.some(isOdd)) return answer;
  return {
    ...answer,
    choices: choices.map((choice) => {
      const finish_reason = finishReasons.get(choice["finish_reason"]);
      return {
        ...choice,
        [holder]: withTextContent(object(choice[holder])),
        ...(finish_reason !== undefined && { finish_reason, native_finish_reason: choice["finish_reason"] }),
      };
    }),
  };
}
