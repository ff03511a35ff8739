import { type JsonObject, text } from "#formats";

const finishReasons: Readonly<Record<string, string>> = {
  end_turn: "stop",
  stop_sequence: "stop",
  pause_turn: "stop",
  max_tokens: "length",
  model_context_window_exceeded: "length",
  tool_use: "tool_calls",
  refusal: "content_filter",
};

/** `stop_reason` as chat has it; null until there is one. */
export function finishOf(stopReason: unknown): string | null {
  const reason = text(stopReason);
  if (!reason) return null;
  return Object.hasOwn(finishReasons, reason) ? (finishReasons[reason] ?? null) : "stop";
}

function stopReason(finish: unknown, isHit: boolean, has: { calls: boolean; refusal: boolean }): string {
  if (finish === "length") return "max_tokens";
  if (finish === "content_filter" || has.refusal) return "refusal";
  if (isHit) return "stop_sequence";
  return has.calls ? "tool_use" : "end_turn";
}

/**
 * Why an answer ended. Chat does not say which stop sequence it was; the servers that do put it into the choice's
 * `stop_reason`. Some say `stop` of an answer that calls tools.
 */
export function stopOf(choice: JsonObject, has: { calls: boolean; refusal: boolean }, request: JsonObject): JsonObject {
  const { finish_reason, stop_reason } = choice;
  const { stop_sequences } = request;
  const isHit = finish_reason === "stop" && Array.isArray(stop_sequences) && stop_sequences.includes(stop_reason);
  return {
    stop_reason: stopReason(finish_reason, isHit, has),
    stop_sequence: isHit ? stop_reason : null,
    stop_details: null,
  };
}
