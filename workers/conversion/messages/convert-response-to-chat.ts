import { count, isCount, type JsonObject, list, object, omitNullish, text } from "#json";
import { joinConverted } from "../chat/whole-answers.ts";
import { chatToolCall, stringifyArguments } from "../tool-calls.ts";
import { encryptedDetail, textDetail } from "./reasoning.ts";

export function convertUsageToChat(usage: unknown): JsonObject | undefined {
  const given = object(usage);
  if (!isCount(given["input_tokens"]) || !isCount(given["output_tokens"] ?? 0)) return undefined;
  const cached = count(given["cache_read_input_tokens"]);
  const written = count(given["cache_creation_input_tokens"]);
  const hour = Math.min(written, count(object(given["cache_creation"])["ephemeral_1h_input_tokens"]));
  const thinking = count(object(given["output_tokens_details"])["thinking_tokens"]);
  const prompt = count(given["input_tokens"]) + cached + written;
  const completion = count(given["output_tokens"]);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: cached,
      cache_write_tokens: written,
      cache_write_1h_tokens: hour,
    },
    ...(thinking > 0 && { completion_tokens_details: { reasoning_tokens: thinking } }),
  };
}

/** Reads the usage from the events of a stream. The provider counts the input at its start, and everything at its end. */
export function usageReader() {
  let counts: JsonObject = {};
  let usage: JsonObject | undefined;
  return {
    read(event: JsonObject): void {
      if (event["type"] === "message_start") counts = omitNullish(object(object(event["message"])["usage"]));
      if (event["type"] !== "message_delta") return;
      counts = { ...counts, ...omitNullish(object(event["usage"])) };
      usage = convertUsageToChat(counts);
    },
    usage: (soFar?: boolean): JsonObject | undefined => usage ?? (soFar ? convertUsageToChat(counts) : undefined),
  };
}

/** All other reasons become chat's `stop`. */
const finishReasons = new Map([
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_use", "tool_calls"],
  ["refusal", "content_filter"],
]);

/** The reason why an answer ended, as fields of a chat choice, with the stop sequence if the provider names it. */
export function mapStopReason(stop: JsonObject): JsonObject {
  const reason = text(stop["stop_reason"]);
  const sequence = text(stop["stop_sequence"]);
  return {
    finish_reason: reason ? (finishReasons.get(reason) ?? "stop") : null,
    ...(sequence && { stop_reason: sequence }),
  };
}

const explanationOf = (stop: JsonObject): string => text(object(stop["stop_details"])["explanation"]);

interface OpenBlock {
  readonly type: unknown;
  readonly input: unknown;
  /** Position among the tool calls. */
  readonly call: number;
  /** Text or arguments so far. */
  content: string;
  signature: string;
}

export function convertStreamToChat() {
  const open = new Map<unknown, OpenBlock>();
  let id: unknown;
  const counted = usageReader();
  let calls = 0;
  let details = 0;

  const chunk = (delta: JsonObject): JsonObject => ({
    id,
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, finish_reason: null }],
  });
  const callChunk = (index: number, fields: JsonObject): JsonObject => chunk({ tool_calls: [{ index, ...fields }] });

  function think(block: OpenBlock | undefined, thinking: string): JsonObject[] {
    if (block) block.content += thinking;
    return thinking ? [chunk({ reasoning_content: thinking })] : [];
  }

  function startBlock(index: unknown, content: JsonObject): JsonObject[] {
    const { type } = content;
    const block: OpenBlock = { type, input: content["input"], call: calls, content: "", signature: "" };
    open.set(index, block);
    switch (type) {
      case "text":
        return text(content["text"]) ? [chunk({ content: content["text"] })] : [];
      case "thinking":
        block.signature = text(content["signature"]);
        return think(block, text(content["thinking"]));
      case "redacted_thinking":
        return [chunk({ reasoning_details: [encryptedDetail(text(content["data"]), details++)] })];
      case "tool_use":
        return [callChunk(calls++, chatToolCall(text(content["id"]), content["name"], ""))];
      default:
        return [];
    }
  }

  function addDelta(index: unknown, delta: JsonObject): JsonObject[] {
    const block = open.get(index);
    switch (delta["type"]) {
      case "text_delta":
        return text(delta["text"]) ? [chunk({ content: delta["text"] })] : [];
      case "thinking_delta":
        return think(block, text(delta["thinking"]));
      case "signature_delta":
        if (block) block.signature = text(delta["signature"]);
        return [];
      case "input_json_delta": {
        const args = text(delta["partial_json"]);
        // Chat has no field for tools that run at the provider.
        if (block?.type !== "tool_use" || !args) return [];
        block.content += args;
        return [callChunk(block.call, { function: { arguments: args } })];
      }
      default:
        return [];
    }
  }

  /** Signed thinking is sent whole when its block ends. */
  function stopBlock(index: unknown): JsonObject[] {
    const block = open.get(index);
    open.delete(index);
    if (block?.type === "thinking" && block.signature)
      return [chunk({ reasoning_details: [textDetail(block.content, block.signature, details++)] })];
    if (block?.type === "tool_use" && !block.content)
      return [callChunk(block.call, { function: { arguments: stringifyArguments(block.input) } })];
    return [];
  }

  function end(event: JsonObject): JsonObject[] {
    const delta = object(event["delta"]);
    const usage = counted.usage();
    const refusal = explanationOf(delta);
    const choice = { index: 0, delta: refusal ? { refusal } : {}, ...mapStopReason(delta) };
    return [{ ...chunk({}), choices: [choice], ...(usage && { usage }) }];
  }

  function start({ message }: JsonObject): JsonObject[] {
    id = text(object(message)["id"]) || undefined;
    return [];
  }

  const converters = new Map<unknown, (event: JsonObject) => readonly JsonObject[]>([
    ["message_start", start],
    ["content_block_start", ({ index, content_block }) => startBlock(index, object(content_block))],
    ["content_block_delta", ({ index, delta }) => addDelta(index, object(delta))],
    ["content_block_stop", ({ index }) => stopBlock(index)],
    ["message_delta", end],
  ]);

  return {
    write(event: JsonObject): readonly JsonObject[] {
      counted.read(event);
      return converters.get(event["type"])?.(event) ?? [];
    },
    usage: counted.usage,
  };
}

export function convertResponseToChat(answer: JsonObject): JsonObject {
  const blocks = list(answer["content"]).flatMap((content_block, index) => [
    { type: "content_block_start", index, content_block },
    { type: "content_block_stop", index },
  ]);
  const events = [
    { type: "message_start", message: answer },
    ...blocks,
    { type: "message_delta", delta: answer, usage: answer["usage"] },
  ];
  return { ...joinConverted(convertStreamToChat(), events), model: answer["model"] };
}
