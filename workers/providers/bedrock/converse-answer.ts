import { count, isObject, type JsonObject, list, object, text } from "#json";
import { converters } from "../../conversion/index.ts";
import { UpstreamFailure } from "../provider.ts";

/** Converse counts cached tokens apart from the input, as Anthropic does. */
function usageInChat(usage: unknown): unknown {
  const { inputTokens, outputTokens, cacheReadInputTokens, cacheWriteInputTokens, cacheDetails } = object(usage);
  const ofHour = list(cacheDetails)
    .filter(({ ttl }) => ttl === "1h")
    .reduce((sum, { inputTokens: tokens }) => sum + count(tokens), 0);
  return converters.messages.native.usage({
    usage: {
      input_tokens: inputTokens,
      output_tokens: outputTokens,
      cache_read_input_tokens: cacheReadInputTokens,
      cache_creation_input_tokens: cacheWriteInputTokens,
      cache_creation: { ephemeral_1h_input_tokens: ofHour },
    },
  });
}

export const malformedAnswer = "the model wrote an answer that cannot be read";

export const isMalformed = (stopReason: unknown): boolean => text(stopReason).startsWith("malformed_");

/** The reason as Anthropic names it. */
function mapStopReason(reason: unknown): string {
  const given = text(reason);
  return given === "guardrail_intervened" || given === "content_filtered" ? "refusal" : given || "end_turn";
}

const toolUse = (value: unknown, input: unknown): JsonObject => {
  const { toolUseId, name } = object(value);
  return { type: "tool_use", id: text(toolUseId), name: text(name), input };
};

/** Signatures are left out: reasoning without one is shown to callers, and not sent back by them. */
function contentBlock(block: JsonObject): JsonObject[] {
  if (typeof block.text === "string") return [{ type: "text", text: block.text }];
  if (isObject(block.toolUse)) return [toolUse(block.toolUse, object(block.toolUse.input))];
  const { reasoningText } = object(block.reasoningContent);
  if (isObject(reasoningText)) return [{ type: "thinking", thinking: text(reasoningText.text) }];
  return [];
}

/** The answer of Converse as a chat completion. Throws `UpstreamFailure` unless it has a message. */
export function chatAnswer(answer: JsonObject): JsonObject {
  const { content } = object(object(answer.output).message);
  if (!Array.isArray(content) || !content.every(isObject))
    throw new UpstreamFailure("unavailable", "an answer without a message");
  if (isMalformed(answer.stopReason)) throw new UpstreamFailure("unavailable", malformedAnswer);
  const { usage: _, ...chat } = converters.messages.responseToChat({
    content: list(content).flatMap(contentBlock),
    stop_reason: mapStopReason(answer.stopReason),
  });
  const usage = usageInChat(answer.usage);
  return usage === undefined ? chat : { ...chat, usage };
}

function blockDelta(delta: JsonObject): JsonObject | undefined {
  if (typeof delta.text === "string") return { type: "text_delta", text: delta.text };
  if (isObject(delta.toolUse)) return { type: "input_json_delta", partial_json: text(delta.toolUse.input) };
  const { text: thinking } = object(delta.reasoningContent);
  return typeof thinking === "string" ? { type: "thinking_delta", thinking } : undefined;
}

/** An event of ConverseStream as one of Anthropic's. Returns undefined for an event that has no counterpart. */
function messagesEvent(name: string, event: JsonObject): JsonObject | undefined {
  const index = event.contentBlockIndex;
  switch (name) {
    case "contentBlockStart": {
      const { toolUse: started } = object(event.start);
      return isObject(started)
        ? { type: "content_block_start", index, content_block: toolUse(started, {}) }
        : undefined;
    }
    case "contentBlockDelta": {
      const delta = blockDelta(object(event.delta));
      return delta && { type: "content_block_delta", index, delta };
    }
    case "contentBlockStop":
      return { type: "content_block_stop", index };
    case "messageStop":
      return { type: "message_delta", delta: { stop_reason: mapStopReason(event.stopReason) } };
    default:
      return undefined;
  }
}

/** Converts the events of one stream, each an object whose only field is the event's name, to chunks of chat. */
export function chunkReader() {
  const reader = converters.messages.streamToChat();
  return (wrapped: JsonObject): readonly JsonObject[] => {
    const [[name, value] = ["", undefined]] = Object.entries(wrapped);
    const event = object(value);
    if (name === "metadata") {
      const usage = usageInChat(event.usage);
      return usage === undefined ? [] : [{ object: "chat.completion.chunk", choices: [], usage }];
    }
    const converted = messagesEvent(name, event);
    return converted ? reader.write(converted) : [];
  };
}
