import type { ServiceError } from "#errors";
import { isSet, type JsonObject, list, object } from "#json";

/** Fields that we set on every response. */
interface Identity {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  /** The caller's name for the model. */
  readonly model: string;
  /** The stored response that the request continues, as the caller named it. */
  readonly previousResponseId?: string | undefined;
  readonly background?: true | undefined;
}

/** Functions are echoed with all of their fields. `strict` defaults to false, because nothing is known about the model. */
function echoTool(tool: JsonObject): JsonObject {
  if (tool["type"] === "namespace") return { ...tool, tools: list(tool["tools"]).map(echoTool) };
  if (tool["type"] !== "function") return tool;
  return {
    ...tool,
    description: tool["description"] ?? null,
    parameters: tool["parameters"] ?? null,
    strict: tool["strict"] ?? false,
  };
}

/** A response that has just begun: the settings of the request, or the format's defaults. */
export function newResponse(request: JsonObject, identity: Identity): JsonObject {
  const setting = (field: string, defaultValue: unknown) => (isSet(request[field]) ? request[field] : defaultValue);
  const { effort, summary } = object(request["reasoning"]);
  const { format, ...textFields } = object(request["text"]);
  return {
    id: identity.id,
    object: "response",
    created_at: identity.created,
    access_programs: null,
    background: identity.background ?? false,
    frequency_penalty: setting("frequency_penalty", 0),
    instructions: setting("instructions", null),
    max_output_tokens: setting("max_output_tokens", null),
    max_tool_calls: setting("max_tool_calls", null),
    metadata: setting("metadata", {}),
    model: identity.model,
    parallel_tool_calls: setting("parallel_tool_calls", true),
    presence_penalty: setting("presence_penalty", 0),
    previous_response_id: identity.previousResponseId ?? null,
    prompt_cache_key: setting("prompt_cache_key", null),
    reasoning: { effort: effort ?? null, summary: summary ?? null },
    safety_identifier: setting("safety_identifier", null),
    service_tier: request["service_tier"] === "auto" ? "default" : setting("service_tier", "default"),
    store: false,
    temperature: setting("temperature", 1),
    text: { format: format ?? { type: "text" }, ...textFields },
    tool_choice: setting("tool_choice", "auto"),
    tools: list(request["tools"]).map(echoTool),
    top_logprobs: setting("top_logprobs", 0),
    top_p: setting("top_p", 1),
    truncation: setting("truncation", "disabled"),
    user: setting("user", null),
    status: "in_progress",
    completed_at: null,
    incomplete_details: null,
    error: null,
    output: [],
    usage: null,
  };
}

/** The `error` of a failed response, which uses its own codes. */
export function responseError({ status, message }: ServiceError): JsonObject {
  if (status === 429) return { code: "rate_limit_exceeded", message };
  return { code: status < 500 ? "invalid_prompt" : "server_error", message };
}
