import { type JsonObject, list, object, text } from "#formats";
import { responsesFailure } from "./failure.ts";
import { detailsOf, paragraph, thoughtsOf } from "./reasoning.ts";
import { chatUsage } from "./usage.ts";

/** A call as chat has it. */
export const chatCall = ({ type, call_id, name, arguments: args, input }: JsonObject): JsonObject =>
  type === "custom_tool_call"
    ? { id: text(call_id), type: "custom", custom: { name: text(name), input: text(input) } }
    : { id: text(call_id), type: "function", function: { name: text(name), arguments: text(args) } };

export const isCall = ({ type }: JsonObject) => type === "function_call" || type === "custom_tool_call";

/** Why a response ended, as chat has it. */
export function finishOf(response: JsonObject, hasCalls: boolean): string {
  const { reason } = object(response["incomplete_details"]);
  if (response["status"] === "incomplete" || reason !== undefined)
    return reason === "content_filter" ? "content_filter" : "length";
  return hasCalls ? "tool_calls" : "stop";
}

/** The provider's whole answer as a chat completion; `{error}` if it is none. */
export function toChatAnswer(response: JsonObject): JsonObject {
  const error = responsesFailure(response);
  if (error) return { error };
  const output = list(response["output"]);
  const parts = output.flatMap(({ type, content }) => (type === "message" ? list(content) : []));
  const reasoning = output.filter(({ type }) => type === "reasoning");
  const calls = output.filter(isCall).map(chatCall);
  const thoughts = reasoning.flatMap(thoughtsOf);
  const details = reasoning.flatMap(detailsOf);
  const logprobs = parts.flatMap((part) => list(part["logprobs"]));
  const joined = (field: string) => parts.map((part) => text(part[field])).join("");
  const usage = chatUsage(response["usage"]);
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
          ...(thoughts.length > 0 && { reasoning_content: thoughts.join(paragraph) }),
          ...(details.length > 0 && { reasoning_details: details }),
          ...(calls.length > 0 && { tool_calls: calls }),
        },
        ...(logprobs.length > 0 && { logprobs: { content: logprobs } }),
        finish_reason: finishOf(response, calls.length > 0),
      },
    ],
    ...(usage && { usage }),
  };
}
