import { type JsonObject, object } from "#formats";

/** Why a response ended, in chat's terms. */
export function mapFinishReasonToChat(response: JsonObject, hasCalls: boolean): string {
  const { reason } = object(response["incomplete_details"]);
  if (response["status"] === "incomplete" || reason !== undefined)
    return reason === "content_filter" ? "content_filter" : "length";
  return hasCalls ? "tool_calls" : "stop";
}

const incompleteReasons: ReadonlyMap<unknown, string> = new Map([
  ["length", "max_output_tokens"],
  ["content_filter", "content_filter"],
]);

export function mapFinishReasonFromChat(finishReason: unknown) {
  const reason = incompleteReasons.get(finishReason);
  if (reason === undefined) return { status: "completed", incomplete_details: null } as const;
  return { status: "incomplete", incomplete_details: { reason } } as const;
}
