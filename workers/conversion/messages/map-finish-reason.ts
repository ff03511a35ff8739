import { type JsonObject, text } from "#formats";

const finishReasons = new Map([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["pause_turn", "stop"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_use", "tool_calls"],
  ["refusal", "content_filter"],
]);

/** Why an answer ended, for a chat choice, with the stop sequence if the provider names it. */
export function mapStopReason(stop: JsonObject): JsonObject {
  const reason = text(stop["stop_reason"]);
  const sequence = text(stop["stop_sequence"]);
  return {
    finish_reason: reason ? (finishReasons.get(reason) ?? "stop") : null,
    ...(sequence && { stop_reason: sequence }),
  };
}

/**
 * Why a chat choice ended, for a Messages answer. Chat does not name the stop sequence; some servers put it into the
 * choice's `stop_reason`. Some servers also end an answer with tool calls by `stop`.
 */
export function mapFinishReason(
  { finish_reason, stop_reason }: JsonObject,
  has: { readonly calls: boolean; readonly refusal: boolean },
  { stop_sequences }: JsonObject,
): JsonObject {
  const isSequence = finish_reason === "stop" && Array.isArray(stop_sequences) && stop_sequences.includes(stop_reason);
  const reason = (): string => {
    if (finish_reason === "length") return "max_tokens";
    if (finish_reason === "content_filter" || has.refusal) return "refusal";
    if (isSequence) return "stop_sequence";
    return has.calls ? "tool_use" : "end_turn";
  };
  return { stop_reason: reason(), stop_sequence: isSequence ? stop_reason : null, stop_details: null };
}
