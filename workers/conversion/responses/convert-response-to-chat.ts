import { count, isCount, type JsonObject, list, object, text } from "#json";
import { joinConverted } from "../chat/whole-answers.ts";
import { chatToolCall } from "../tool-calls.ts";
import { paragraphBreak } from "./output-items.ts";
import { reasoningDetailsOf } from "./reasoning-state.ts";

export function mapFinishReasonToChat(response: JsonObject, hasCalls: boolean): string {
  const { reason } = object(response["incomplete_details"]);
  if (response["status"] === "incomplete" || reason !== undefined)
    return reason === "content_filter" ? "content_filter" : "length";
  return hasCalls ? "tool_calls" : "stop";
}

/**
 * A response's usage in chat shape. Returns undefined if it is missing or invalid. Cache writes with the longer lifetime (12
 * hours) are billed like Anthropic's of one hour.
 */
export function convertUsageToChat(usage: unknown): JsonObject | undefined {
  const { input_tokens, output_tokens, input_tokens_details, output_tokens_details } = object(usage);
  if (!isCount(input_tokens) || !isCount(output_tokens ?? 0)) return undefined;
  const { cached_tokens, cache_write_tokens, cache_write_tokens_details, audio_tokens } = object(input_tokens_details);
  const cacheWrites = count(cache_write_tokens);
  const longCacheWrites = Math.min(cacheWrites, count(object(cache_write_tokens_details)["ttl_12h_tokens"]));
  const prompt = count(input_tokens);
  const completion = count(output_tokens);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: count(cached_tokens),
      cache_write_tokens: cacheWrites,
      cache_write_1h_tokens: longCacheWrites,
      audio_tokens: count(audio_tokens),
    },
    completion_tokens_details: { reasoning_tokens: count(object(output_tokens_details)["reasoning_tokens"]) },
  };
}

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

const isCall = ({ type }: JsonObject) => type === "function_call" || type === "custom_tool_call";

const callToChat = ({ type, call_id, name, arguments: args, input }: JsonObject): JsonObject =>
  type === "custom_tool_call"
    ? { id: text(call_id), type: "custom", custom: { name: text(name), input: text(input) } }
    : chatToolCall(text(call_id), name, text(args));

/** A failure becomes a chunk with `error`, as chat servers send it. */
export function convertStreamToChat() {
  let id = "";
  let created: unknown;
  let model: unknown;
  let usage: unknown;
  /** Calls by the position of their item. `sent` counts the characters of input that chunks already carried. */
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

  const refuse = ({ delta }: JsonObject) => (text(delta) ? [chunk({ refusal: delta })] : []);
  const addDelta = (event: JsonObject) => addInput(event, text(event["delta"]));
  const endInput = (event: JsonObject) => addRemaining(event, event["arguments"] ?? event["input"]);
  const converters = new Map<unknown, (event: JsonObject) => readonly JsonObject[]>([
    ["response.created", ({ response }) => begin(object(response))],
    ["response.output_text.delta", addText],
    ["response.refusal.delta", refuse],
    ["response.reasoning_summary_text.delta", addReasoning],
    ["response.reasoning_text.delta", addReasoning],
    ["response.output_item.added", beginCall],
    ["response.function_call_arguments.delta", addDelta],
    ["response.custom_tool_call_input.delta", addDelta],
    ["response.function_call_arguments.done", endInput],
    ["response.custom_tool_call_input.done", endInput],
    ["response.output_item.done", endItem],
    ["response.completed", ({ response }) => end(object(response))],
    ["response.incomplete", ({ response }) => end(object(response))],
  ]);

  return {
    write(event: JsonObject): readonly JsonObject[] {
      const convert = converters.get(event["type"]);
      if (convert) return convert(event);
      const error = responsesFailure(event);
      return error ? [{ error }] : [];
    },
    usage: () => usage,
  };
}

/** The events of an item that is streamed whole. */
function itemEvents(item: JsonObject, output_index: number): JsonObject[] {
  const delta = (kind: string, fields: JsonObject) => ({ type: `response.${kind}.delta`, output_index, ...fields });
  const { type, content, summary } = item;
  if (type === "message")
    return list(content).flatMap(({ text, refusal, logprobs }) => [
      delta("output_text", { delta: text, logprobs }),
      delta("refusal", { delta: refusal }),
    ]);
  const done = { type: "response.output_item.done", output_index, item };
  if (type !== "reasoning") return [done];
  return [
    ...list(summary).map((part, summary_index) =>
      delta("reasoning_summary_text", { delta: part["text"], summary_index }),
    ),
    ...list(content).map((part, content_index) => delta("reasoning_text", { delta: part["text"], content_index })),
    done,
  ];
}

/** Returns `{error}` for a response that failed. */
export function convertResponseToChat(response: JsonObject): JsonObject {
  const error = responsesFailure(response);
  if (error) return { error };
  const events = [...list(response["output"]).flatMap(itemEvents), { type: "response.completed", response }];
  const { id, created_at, model } = response;
  return { ...joinConverted(convertStreamToChat(), events), id: text(id), created: created_at, model };
}
