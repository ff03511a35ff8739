import { type Format } from "#formats";
import { type JsonObject, list, object } from "#json";
import { RepeatedChunk } from "./chat/repeated-chunk.ts";
import { mapFinishReasonToChat as fromGemini } from "./gemini/convert-response-to-chat.ts";
import { mapStopReason } from "./messages/convert-response-to-chat.ts";
import { mapFinishReasonToChat as fromResponses } from "./responses/convert-response-to-chat.ts";

/** Reads why a provider's first choice ended, from its whole answer or its events, as a finish reason of chat. */
export function finishReasonReader(format: Format) {
  let hasCalls = false;

  function reasonIn(item: JsonObject): unknown {
    if (format === "chat") {
      const choices = list(item["choices"]);
      return (choices.find(({ index }) => index === 0) ?? choices[0])?.["finish_reason"];
    }
    if (format === "messages") return mapStopReason(object(item["delta"] ?? item))["finish_reason"];
    if (format === "responses") {
      const response = object(item["response"] ?? item);
      if (response["status"] !== "completed" && response["status"] !== "incomplete") return undefined;
      return fromResponses(
        response,
        list(response["output"]).some(({ type }) => type === "function_call" || type === "custom_tool_call"),
      );
    }
    const [candidate = {}] = list(item["candidates"]);
    hasCalls ||= list(object(candidate["content"])["parts"]).some((part) => "functionCall" in part);
    return fromGemini(candidate, hasCalls)["finish_reason"];
  }

  return (item: JsonObject): string | undefined => {
    // A repeated chunk is not the last one.
    const reason = item instanceof RepeatedChunk ? undefined : reasonIn(item);
    return typeof reason === "string" && reason !== "" ? reason.slice(0, 40) : undefined;
  };
}
