import { type ServiceError } from "#errors";
import { isSet, type JsonObject, list, object, text } from "#formats";
import { contentText, firstChoice, reasoningText } from "../chat/fields.ts";
import { type ResponseIdentity } from "../converter.ts";
import { convertUsageFromChat } from "./convert-usage.ts";
import { mapFinishReasonFromChat } from "./map-finish-reason.ts";
import {
  callItem,
  callType,
  itemId,
  logprobsFromChat,
  messageItem,
  noArguments,
  readCall,
  reasoningItem,
  refusalPart,
  responseId,
  summaryPart,
  textPart,
  toolCallId,
} from "./output-items.ts";

export interface ResponseState {
  readonly status: "in_progress" | "completed" | "incomplete" | "failed";
  readonly incomplete_details: JsonObject | null;
  readonly error: JsonObject | null;
  readonly output: readonly JsonObject[];
  readonly usage: JsonObject | null;
}

/** The `error` of a failed response, which has codes of its own. */
export function responseError({ status, message }: ServiceError): JsonObject {
  if (status === 429) return { code: "rate_limit_exceeded", message };
  return { code: status < 500 ? "invalid_prompt" : "server_error", message };
}

/** The response object: its state, with the settings of the request, or the format's defaults. */
export function responseObject(request: JsonObject, identity: ResponseIdentity, state: ResponseState): JsonObject {
  const setting = (field: string, defaultValue: unknown) => (isSet(request[field]) ? request[field] : defaultValue);
  const { effort, summary } = object(request["reasoning"]);
  const { format, ...textFields } = object(request["text"]);
  return {
    id: responseId(identity),
    object: "response",
    created_at: identity.created,
    ...state,
    background: false,
    instructions: setting("instructions", null),
    max_output_tokens: setting("max_output_tokens", null),
    max_tool_calls: setting("max_tool_calls", null),
    metadata: setting("metadata", {}),
    model: identity.model,
    parallel_tool_calls: setting("parallel_tool_calls", true),
    previous_response_id: null,
    prompt_cache_key: setting("prompt_cache_key", null),
    reasoning: { effort: effort ?? null, summary: summary ?? null },
    safety_identifier: setting("safety_identifier", null),
    service_tier: request["service_tier"] === "auto" ? "default" : setting("service_tier", "default"),
    store: false,
    temperature: setting("temperature", 1),
    text: { format: format ?? { type: "text" }, ...textFields },
    tool_choice: setting("tool_choice", "auto"),
    tools: setting("tools", []),
    top_logprobs: setting("top_logprobs", 0),
    top_p: setting("top_p", 1),
    truncation: setting("truncation", "disabled"),
    user: setting("user", null),
  };
}

function outputOf(choice: JsonObject, identity: ResponseIdentity): JsonObject[] {
  const message = object(choice["message"]);
  const output: JsonObject[] = [];
  const reasoning = reasoningText(message);
  if (reasoning) output.push(reasoningItem(itemId("reasoning", identity, output.length), [summaryPart(reasoning)]));
  const content = contentText(message["content"]);
  const refusal = text(message["refusal"]);
  if (content || refusal)
    output.push(
      messageItem(itemId("message", identity, output.length), "completed", [
        ...(content ? [textPart(content, logprobsFromChat(object(choice["logprobs"])["content"]))] : []),
        ...(refusal ? [refusalPart(refusal)] : []),
      ]),
    );
  list(message["tool_calls"]).forEach((value, c) => {
    const call = readCall(value);
    const input = call.input || (call.isCustom ? "" : noArguments);
    const callId = text(value["id"]) || toolCallId(identity, c);
    const id = itemId(callType(call.isCustom), identity, output.length);
    output.push(callItem(id, "completed", { ...call, callId, input }));
  });
  return output;
}

export function convertResponseFromChat(
  response: JsonObject,
  identity: ResponseIdentity,
  request: JsonObject,
): JsonObject {
  const choice = firstChoice(response["choices"]) ?? {};
  const end = mapFinishReasonFromChat(choice["finish_reason"]);
  const output = outputOf(choice, identity);
  // Only the last item can be cut short. Reasoning has no status.
  const last = output.at(-1);
  if (end.status === "incomplete" && last?.["status"]) output[output.length - 1] = { ...last, status: "incomplete" };
  return responseObject(request, identity, {
    ...end,
    error: null,
    output,
    usage: convertUsageFromChat(response["usage"], { input: 0, output: 0 }),
  });
}
