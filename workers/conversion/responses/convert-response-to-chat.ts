import { type JsonObject, list, object, text } from "#formats";
import { convertUsageToChat } from "./convert-usage.ts";
import { mapFinishReasonToChat } from "./map-finish-reason.ts";
import { paragraphBreak, reasoningDetailsOf } from "./reasoning.ts";

/**
 * The error of a stream event or a whole response: `{message, code?, param?, type?}`. The reference documents flat error
 * events, but the provider also sends nested ones.
 */
export function responsesFailure(item: JsonObject): JsonObject | undefined {
  if (item["type"] === "error") return errorOf(object(item["error"] ?? item));
  const response = item["type"] === "response.failed" ? object(item["response"]) : item;
  const { status, error } = response;
  return status === "failed" || status === "cancelled" ? errorOf(object(error)) : undefined;
}

function errorOf({ code, message, param, type }: JsonObject): JsonObject {
  return {
    message: text(message) || "The model failed.",
    ...(text(code) && { code }),
    ...(text(param) && { param }),
    ...(text(type) && type !== "error" && { type }),
  };
}

export const isCall = ({ type }: JsonObject) => type === "function_call" || type === "custom_tool_call";

export const callToChat = ({ type, call_id, name, arguments: args, input }: JsonObject): JsonObject =>
  type === "custom_tool_call"
    ? { id: text(call_id), type: "custom", custom: { name: text(name), input: text(input) } }
    : { id: text(call_id), type: "function", function: { name: text(name), arguments: text(args) } };

/** `{error}` for a response that failed. */
export function convertResponseToChat(response: JsonObject): JsonObject {
  const error = responsesFailure(response);
  if (error) return { error };
  const output = list(response["output"]);
  const parts = output.flatMap(({ type, content }) => (type === "message" ? list(content) : []));
  const reasoning = output.filter(({ type }) => type === "reasoning");
  const calls = output.filter(isCall).map(callToChat);
  const thoughts = reasoning
    .flatMap(({ summary, content }) => [...list(summary), ...list(content)])
    .map((part) => text(part["text"]))
    .filter(Boolean);
  const details = reasoning.flatMap(reasoningDetailsOf);
  const logprobs = parts.flatMap((part) => list(part["logprobs"]));
  const joined = (field: string) => parts.map((part) => text(part[field])).join("");
  const usage = convertUsageToChat(response["usage"]);
  return {
    id: text(response["id"]),
    object: "chat.completion",
    created: response["created_at"],
    model: response["model"],
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: joined("text") || null,
          refusal: joined("refusal") || null,
          ...(thoughts.length > 0 && { reasoning_content: thoughts.join(paragraphBreak) }),
          ...(details.length > 0 && { reasoning_details: details }),
          ...(calls.length > 0 && { tool_calls: calls }),
        },
        ...(logprobs.length > 0 && { logprobs: { content: logprobs } }),
        finish_reason: mapFinishReasonToChat(response, calls.length > 0),
      },
    ],
    ...(usage && { usage }),
  };
}
