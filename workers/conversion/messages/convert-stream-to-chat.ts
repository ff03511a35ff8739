import { given, type JsonObject, object, text } from "#formats";
import { stringifyArguments } from "../tool-calls.ts";
import { explanationOf } from "./convert-response-to-chat.ts";
import { convertUsageToChat } from "./convert-usage.ts";
import { mapStopReason } from "./map-finish-reason.ts";
import { encryptedDetail, textDetail } from "./reasoning.ts";

interface OpenBlock {
  readonly type: unknown;
  readonly input: JsonObject;
  /** Position among the tool calls. */
  readonly call: number;
  /** Text or arguments so far. */
  content: string;
  signature: string;
}

/** The provider's stream events as chat chunks, the last with the usage. */
export function convertStreamToChat() {
  const open = new Map<unknown, OpenBlock>();
  let id: unknown;
  let counts: JsonObject = {};
  let usage: JsonObject | undefined;
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
    const block: OpenBlock = { type, input: object(content["input"]), call: calls, content: "", signature: "" };
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
        return [
          callChunk(calls++, {
            id: text(content["id"]),
            type: "function",
            function: { name: text(content["name"]), arguments: "" },
          }),
        ];
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
    counts = { ...counts, ...given(object(event["usage"])) };
    usage = convertUsageToChat(counts);
    const refusal = explanationOf(delta);
    const choice = { index: 0, delta: refusal ? { refusal } : {}, ...mapStopReason(delta) };
    return [{ ...chunk({}), choices: [choice], ...(usage && { usage }) }];
  }

  return {
    write(event: JsonObject): readonly JsonObject[] {
      const { type, index } = event;
      switch (type) {
        case "message_start": {
          const message = object(event["message"]);
          id = text(message["id"]) || undefined;
          counts = given(object(message["usage"]));
          return [];
        }
        case "content_block_start":
          return startBlock(index, object(event["content_block"]));
        case "content_block_delta":
          return addDelta(index, object(event["delta"]));
        case "content_block_stop":
          return stopBlock(index);
        case "message_delta":
          return end(event);
        default:
          return [];
      }
    },
    /** Before the end of the answer the provider has only counted the input. */
    usage: (soFar?: boolean): unknown => usage ?? (soFar ? convertUsageToChat(counts) : undefined),
  };
}
