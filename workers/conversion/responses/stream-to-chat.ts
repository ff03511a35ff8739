import { type JsonObject, list, object, text } from "#formats";
import { responsesFailure } from "./failure.ts";
import { detailsOf, paragraph } from "./reasoning.ts";
import { chatCall, finishOf, isCall } from "./to-chat-answer.ts";
import { chatUsage } from "./usage.ts";

/** What the provider's events say, as chat chunks. A failure is a chunk that has `error`, as servers of chat send it. */
export function streamToChat() {
  let id = "";
  let created: unknown;
  let model: unknown;
  let usage: unknown;
  /** By the place of the item: which call of the answer it is, and how much of its input has been passed on. */
  const calls = new Map<unknown, { readonly index: number; readonly isCustom: boolean; sent: number }>();
  let reasoningItems = 0;
  let lastThought: string | undefined;

  const placeOf = (event: JsonObject) => event["output_index"] ?? event["item_id"] ?? object(event["item"])["id"];
  const choice = (delta: JsonObject, rest: JsonObject = {}): JsonObject => ({
    id,
    object: "chat.completion.chunk",
    created,
    model,
    choices: [{ index: 0, delta, finish_reason: null, ...rest }],
  });
  const begin = (response: JsonObject): readonly JsonObject[] => {
    id = text(response["id"]);
    created = response["created_at"];
    model = response["model"];
    return [choice({ role: "assistant", content: "" })];
  };

  const say = (event: JsonObject): readonly JsonObject[] => {
    const content = text(event["delta"]);
    const logprobs = list(event["logprobs"]);
    return content ? [choice({ content }, logprobs.length > 0 ? { logprobs: { content: logprobs } } : {})] : [];
  };
  const think = (event: JsonObject): readonly JsonObject[] => {
    const delta = text(event["delta"]);
    if (!delta) return [];
    const thought = JSON.stringify([placeOf(event), event["type"], event["summary_index"] ?? event["content_index"]]);
    const isNext = lastThought !== undefined && lastThought !== thought;
    lastThought = thought;
    return [choice({ reasoning_content: isNext ? paragraph + delta : delta })];
  };

  const beginCall = (event: JsonObject): readonly JsonObject[] => {
    const item = object(event["item"]);
    const place = placeOf(event);
    if (!isCall(item) || calls.has(place)) return [];
    const call = chatCall(item);
    const isCustom = call["type"] === "custom";
    const index = calls.size;
    calls.set(place, { index, isCustom, sent: text(isCustom ? item["input"] : item["arguments"]).length });
    return [choice({ tool_calls: [{ index, ...call }] })];
  };
  const passInput = (event: JsonObject, input: string): readonly JsonObject[] => {
    const call = calls.get(placeOf(event));
    if (!call || input === "") return [];
    const { index, isCustom } = call;
    call.sent += input.length;
    const part = isCustom ? { type: "custom", custom: { input } } : { function: { arguments: input } };
    return [choice({ tool_calls: [{ index, ...part }] })];
  };
  /** Some servers send what is whole without the deltas before it. */
  const passRest = (event: JsonObject, whole: unknown): readonly JsonObject[] =>
    passInput(event, text(whole).slice(calls.get(placeOf(event))?.sent ?? 0));

  const endItem = (event: JsonObject): readonly JsonObject[] => {
    const item = object(event["item"]);
    if (isCall(item)) {
      const begun = beginCall(event);
      return [...begun, ...passRest(event, item["type"] === "custom_tool_call" ? item["input"] : item["arguments"])];
    }
    if (item["type"] !== "reasoning") return [];
    const details = detailsOf(item, reasoningItems++);
    return details.length > 0 ? [choice({ reasoning_details: details })] : [];
  };
  const finish = (response: JsonObject): readonly JsonObject[] => {
    usage = chatUsage(response["usage"]);
    const last = choice({}, { finish_reason: finishOf(response, calls.size > 0) });
    return usage === undefined ? [last] : [last, { ...last, choices: [], usage }];
  };

  return {
    write(event: JsonObject): readonly JsonObject[] {
      switch (event["type"]) {
        case "response.created":
          return begin(object(event["response"]));
        case "response.output_text.delta":
          return say(event);
        case "response.refusal.delta":
          return text(event["delta"]) ? [choice({ refusal: event["delta"] })] : [];
        case "response.reasoning_summary_text.delta":
        case "response.reasoning_text.delta":
          return think(event);
        case "response.output_item.added":
          return beginCall(event);
        case "response.function_call_arguments.delta":
        case "response.custom_tool_call_input.delta":
          return passInput(event, text(event["delta"]));
        case "response.function_call_arguments.done":
          return passRest(event, event["arguments"]);
        case "response.custom_tool_call_input.done":
          return passRest(event, event["input"]);
        case "response.output_item.done":
          return endItem(event);
        case "response.completed":
        case "response.incomplete":
          return finish(object(event["response"]));
        default: {
          const error = responsesFailure(event);
          return error ? [{ error }] : [];
        }
      }
    },
    usage: () => usage,
  };
}
