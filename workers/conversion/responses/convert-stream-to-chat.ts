import { type JsonObject, list, object, text } from "#formats";
import { callToChat, isCall, responsesFailure } from "./convert-response-to-chat.ts";
import { convertUsageToChat } from "./convert-usage.ts";
import { mapFinishReasonToChat } from "./map-finish-reason.ts";
import { paragraphBreak, reasoningDetailsOf } from "./reasoning.ts";

/** A failure becomes a chunk with `error`, as chat servers send it. */
export function convertStreamToChat() {
  let id = "";
  let created: unknown;
  let model: unknown;
  let usage: unknown;
  /** By the position of the item. `sent`: how many characters of its input the chunks have had. */
  const calls = new Map<unknown, { readonly index: number; readonly isCustom: boolean; sent: number }>();
  let reasoningItems = 0;
  let lastReasoningPart: string | undefined;

  const positionOf = (event: JsonObject) => event["output_index"] ?? event["item_id"] ?? object(event["item"])["id"];
  const chunk = (delta: JsonObject, choice: JsonObject = {}): JsonObject => ({
    id,
    object: "chat.completion.chunk",
    created,
    model,
    choices: [{ index: 0, delta, finish_reason: null, ...choice }],
  });
  const begin = (response: JsonObject): readonly JsonObject[] => {
    id = text(response["id"]);
    created = response["created_at"];
    model = response["model"];
    return [chunk({ role: "assistant", content: "" })];
  };

  const addText = (event: JsonObject): readonly JsonObject[] => {
    const content = text(event["delta"]);
    const logprobs = list(event["logprobs"]);
    return content ? [chunk({ content }, logprobs.length > 0 ? { logprobs: { content: logprobs } } : {})] : [];
  };
  const addReasoning = (event: JsonObject): readonly JsonObject[] => {
    const delta = text(event["delta"]);
    if (!delta) return [];
    const part = JSON.stringify([positionOf(event), event["type"], event["summary_index"] ?? event["content_index"]]);
    const isNewPart = lastReasoningPart !== undefined && lastReasoningPart !== part;
    lastReasoningPart = part;
    return [chunk({ reasoning_content: isNewPart ? paragraphBreak + delta : delta })];
  };

  const beginCall = (event: JsonObject): readonly JsonObject[] => {
    const item = object(event["item"]);
    const position = positionOf(event);
    if (!isCall(item) || calls.has(position)) return [];
    const call = callToChat(item);
    const isCustom = call["type"] === "custom";
    const index = calls.size;
    calls.set(position, { index, isCustom, sent: text(isCustom ? item["input"] : item["arguments"]).length });
    return [chunk({ tool_calls: [{ index, ...call }] })];
  };
  const addInput = (event: JsonObject, input: string): readonly JsonObject[] => {
    const call = calls.get(positionOf(event));
    if (!call || input === "") return [];
    call.sent += input.length;
    const delta = call.isCustom ? { type: "custom", custom: { input } } : { function: { arguments: input } };
    return [chunk({ tool_calls: [{ index: call.index, ...delta }] })];
  };
  /** Some servers send the whole input without deltas before it. */
  const addRemaining = (event: JsonObject, input: unknown): readonly JsonObject[] =>
    addInput(event, text(input).slice(calls.get(positionOf(event))?.sent ?? 0));

  const endItem = (event: JsonObject): readonly JsonObject[] => {
    const item = object(event["item"]);
    if (isCall(item)) {
      const begun = beginCall(event);
      return [
        ...begun,
        ...addRemaining(event, item["type"] === "custom_tool_call" ? item["input"] : item["arguments"]),
      ];
    }
    if (item["type"] !== "reasoning") return [];
    const details = reasoningDetailsOf(item, reasoningItems++);
    return details.length > 0 ? [chunk({ reasoning_details: details })] : [];
  };
  const end = (response: JsonObject): readonly JsonObject[] => {
    usage = convertUsageToChat(response["usage"]);
    const last = chunk({}, { finish_reason: mapFinishReasonToChat(response, calls.size > 0) });
    return usage === undefined ? [last] : [last, { ...last, choices: [], usage }];
  };

  return {
    write(event: JsonObject): readonly JsonObject[] {
      switch (event["type"]) {
        case "response.created":
          return begin(object(event["response"]));
        case "response.output_text.delta":
          return addText(event);
        case "response.refusal.delta":
          return text(event["delta"]) ? [chunk({ refusal: event["delta"] })] : [];
        case "response.reasoning_summary_text.delta":
        case "response.reasoning_text.delta":
          return addReasoning(event);
        case "response.output_item.added":
          return beginCall(event);
        case "response.function_call_arguments.delta":
        case "response.custom_tool_call_input.delta":
          return addInput(event, text(event["delta"]));
        case "response.function_call_arguments.done":
        case "response.custom_tool_call_input.done":
          return addRemaining(event, event["arguments"] ?? event["input"]);
        case "response.output_item.done":
          return endItem(event);
        case "response.completed":
        case "response.incomplete":
          return end(object(event["response"]));
        default: {
          const error = responsesFailure(event);
          return error ? [{ error }] : [];
        }
      }
    },
    usage: () => usage,
  };
}
