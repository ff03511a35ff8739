import { type JsonObject, list, object, text } from "#json";

/** Ends that compatible servers have beside OpenAI's: Together, Mistral, Z.ai. docs/upstreams.md has the sources. */
const finishReasons: ReadonlyMap<unknown, string> = new Map([
  ["eos", "stop"],
  ["model_length", "length"],
  ["model_context_window_exceeded", "length"],
  ["sensitive", "content_filter"],
]);

/** An end that is a failure of the server: Z.ai, Mistral. */
const failures: readonly unknown[] = ["network_error", "error"];

/** Mistral's reasoning models answer with a list of texts and of thinking, each of whose parts is a text. */
function withTextContent(message: JsonObject): JsonObject {
  const { content } = message;
  if (!Array.isArray(content)) return message;
  const parts = list(content);
  const textOf = (each: readonly JsonObject[]) => each.map((part) => text(part["text"])).join("");
  const thinking = parts.filter(({ type }) => type === "thinking").map(({ thinking: inner }) => textOf(list(inner)));
  return { ...message, content: textOf(parts), ...(thinking.length > 0 && { reasoning_content: thinking.join("") }) };
}

/** The error for which the choices of an answer or a chunk stand; undefined for all others. */
export const failureOfChoices = ({ choices }: JsonObject): JsonObject | undefined => {
  const failed = list(choices).find(({ finish_reason }) => failures.includes(finish_reason));
  return failed && { error: { message: `finish_reason ${text(failed["finish_reason"])}`, code: 500 } };
};

/** An answer or a chunk of a compatible server, with content and ends as OpenAI has them. */
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
