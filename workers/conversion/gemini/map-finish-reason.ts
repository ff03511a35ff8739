import { text } from "#formats";

const finishReasons: ReadonlyMap<string, string> = new Map([
  ["MAX_TOKENS", "length"],
  ["CONTINUATION", "length"],
  ["SAFETY", "content_filter"],
  ["RECITATION", "content_filter"],
  ["LANGUAGE", "content_filter"],
  ["BLOCKLIST", "content_filter"],
  ["PROHIBITED_CONTENT", "content_filter"],
  ["SPII", "content_filter"],
  ["IMAGE_SAFETY", "content_filter"],
  ["IMAGE_PROHIBITED_CONTENT", "content_filter"],
  ["IMAGE_RECITATION", "content_filter"],
  ["MODEL_ARMOR", "content_filter"],
]);

/** A candidate's `finishReason` as chat has it; null until there is one. The provider says STOP of calls too. */
export function chatFinish(finishReason: unknown, hasCalls: boolean): string | null {
  const reason = text(finishReason);
  if (!reason || reason === "FINISH_REASON_UNSPECIFIED") return null;
  return finishReasons.get(reason) ?? (hasCalls ? "tool_calls" : "stop");
}

/** Why an answer ended. `malformed`: the arguments of a call that are no JSON object, as the model wrote them. */
export function geminiFinish(finish: unknown, has: { refusal: boolean; malformed: string }): Record<string, string> {
  if (finish === "length") return { finishReason: "MAX_TOKENS" };
  if (finish === "content_filter" || has.refusal) return { finishReason: "SAFETY" };
  if (has.malformed)
    return { finishReason: "MALFORMED_FUNCTION_CALL", finishMessage: `Malformed function call: ${has.malformed}` };
  return { finishReason: "STOP" };
}

/** What the provider says of an answer that it held back. */
export function withheld(finish: string | null, message: unknown): string | null {
  return finish === "content_filter" ? text(message) || null : null;
}

/** Of a prompt that got no answer. */
export const blocked = (reason: string, message: unknown): string =>
  text(message) || `The prompt was blocked: ${reason}.`;
