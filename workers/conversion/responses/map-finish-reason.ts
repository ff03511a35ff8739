import { type JsonObject, object } from "#formats";

/** Why a response ended, in chat's terms. */
export function mapFinishReasonToChat(response: JsonObject, hasCalls: boolean): string {
  const { reason } = object(response["incomplete_details"]);
  if (response["status"] === "incomplete" || reason !== undefined)
    return reason === "content_filter" ? "content_filter" : "length";
  return hasCalls ? "tool_calls" : "stop";
}

export interface ResponseEnd {
  readonly status: "completed" | "incomplete";
  readonly incomplete_details: JsonObject | null;
}

export function mapFinishReasonFromChat(finishReason: unknown): ResponseEnd {
  if (finishReason === "length") return { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } };
  if (finishReason === "content_filter")
    return { status: "incomplete", incomplete_details: { reason: "content_filter" } };
  return { status: "completed", incomplete_details: null };
}
