import { type JsonObject, list, text } from "#formats";
import { blockedRefusal, convertCandidate, indexOf, logprobsToChat } from "./convert-response-to-chat.ts";
import { convertUsageToChat } from "./convert-usage.ts";

/**
 * The provider reports usage with every event. Chunks carry it only at the end of an answer, because earlier counts may
 * not include all output.
 */
export function convertStreamToChat() {
  /** By candidate. */
  const callCounts = new Map<number, number>();
  let id: unknown;
  let usage: unknown;

  function choiceOf(candidate: JsonObject, position: number): JsonObject {
    const index = indexOf(candidate, position);
    const firstCall = callCounts.get(index) ?? 0;
    const { fields, calls, finishReason } = convertCandidate(candidate, id, index, firstCall);
    callCounts.set(index, firstCall + calls.length);
    const toolCalls = calls.length > 0 && { tool_calls: calls.map((call, c) => ({ index: firstCall + c, ...call })) };
    const delta = { ...fields, ...toolCalls };
    return { index, delta, ...logprobsToChat(candidate["logprobsResult"]), finish_reason: finishReason };
  }

  return {
    write(event: JsonObject): readonly JsonObject[] {
      id ??= text(event["responseId"]) || undefined;
      if (event["usageMetadata"] != null) usage = event["usageMetadata"];
      const refusal = blockedRefusal(event);
      const choices =
        refusal === undefined
          ? list(event["candidates"]).map(choiceOf)
          : [{ index: 0, delta: { refusal }, finish_reason: "content_filter" }];
      const isEnd = choices.length === 0 || choices.some((choice) => choice["finish_reason"] !== null);
      const counted = isEnd ? convertUsageToChat(usage) : undefined;
      if (choices.length === 0 && !counted) return [];
      return [{ id, object: "chat.completion.chunk", choices, usage: counted }];
    },
    /** The provider's last count. */
    usage: (): unknown => convertUsageToChat(usage),
  };
}
