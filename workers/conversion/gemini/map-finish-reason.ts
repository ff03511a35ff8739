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

/** Null until the candidate has ended. The provider says STOP for tool calls, too. */
export function mapFinishReasonToChat(finishReason: unknown, hasCalls: boolean): string | null {
  const reason = text(finishReason);
  if (!reason || reason === "FINISH_REASON_UNSPECIFIED") return null;
  return finishReasons.get(reason) ?? (hasCalls ? "tool_calls" : "stop");
}

/** `malformed`: the tool calls whose arguments are not a JSON object, as the model wrote them. */
export function mapFinishReasonFromChat(
  finishReason: unknown,
  { hasRefusal, malformed }: { hasRefusal: boolean; malformed: string },
): Record<string, string> {
  if (finishReason === "length") return { finishReason: "MAX_TOKENS" };
  if (finishReason === "content_filter" || hasRefusal) return { finishReason: "SAFETY" };
  if (malformed)
    return { finishReason: "MALFORMED_FUNCTION_CALL", finishMessage: `Malformed function call: ${malformed}` };
  return { finishReason: "STOP" };
}
