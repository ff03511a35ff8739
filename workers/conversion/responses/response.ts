import { isSet, type JsonObject, object } from "#formats";
import type { ResponseIdentity } from "../converter.ts";
import { responseId } from "./items.ts";

/** How an answer stands. */
export interface State {
  readonly status: "in_progress" | "completed" | "incomplete" | "failed";
  readonly incomplete_details: JsonObject | null;
  readonly error: JsonObject | null;
  readonly output: readonly JsonObject[];
  readonly usage: JsonObject | null;
}

/** The state that a chat answer ended in, by its `finish_reason`. */
export function endOf(
  finish: unknown,
): { readonly status: "completed" | "incomplete" } & Pick<State, "incomplete_details"> {
  if (finish === "length") return { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } };
  if (finish === "content_filter") return { status: "incomplete", incomplete_details: { reason: "content_filter" } };
  return { status: "completed", incomplete_details: null };
}

/** The response object: how the answer stands, with what the request asked for, or the default of the format. */
export function responseObject(request: JsonObject, ours: ResponseIdentity, state: State): JsonObject {
  const or = (field: string, otherwise: unknown) => (isSet(request[field]) ? request[field] : otherwise);
  const { effort, summary } = object(request["reasoning"]);
  const { format, ...textFields } = object(request["text"]);
  return {
    id: responseId(ours),
    object: "response",
    created_at: ours.created,
    status: state.status,
    background: false,
    error: state.error,
    incomplete_details: state.incomplete_details,
    instructions: or("instructions", null),
    max_output_tokens: or("max_output_tokens", null),
    max_tool_calls: or("max_tool_calls", null),
    metadata: or("metadata", {}),
    model: ours.model,
    output: state.output,
    parallel_tool_calls: or("parallel_tool_calls", true),
    previous_response_id: null,
    prompt_cache_key: or("prompt_cache_key", null),
    reasoning: { effort: effort ?? null, summary: summary ?? null },
    safety_identifier: or("safety_identifier", null),
    service_tier: request["service_tier"] === "auto" ? "default" : or("service_tier", "default"),
    store: false,
    temperature: or("temperature", 1),
    text: { format: format ?? { type: "text" }, ...textFields },
    tool_choice: or("tool_choice", "auto"),
    tools: or("tools", []),
    top_logprobs: or("top_logprobs", 0),
    top_p: or("top_p", 1),
    truncation: or("truncation", "disabled"),
    usage: state.usage,
    user: or("user", null),
  };
}
