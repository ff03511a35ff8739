import { given, type JsonObject, object, text } from "#formats";
import { stringifyArguments } from "../tool-calls.ts";
import { endOf, explanationOf } from "./answer.ts";
import { encrypted, signedText } from "./reasoning.ts";
import { chatUsage } from "./usage.ts";

/** A block of the provider's that has begun and not ended. */
interface Open {
  readonly type: unknown;
  readonly input: JsonObject;
  /** Of a tool's. */
  readonly call: number;
  said: string;
  signature: string;
}

/** The provider's stream events as chat chunks. Usage comes with the last. */
export function streamToChat() {
  const open = new Map<unknown, Open>();
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

  function think(block: Open | undefined, thinking: string): JsonObject[] {
    if (block) block.said += thinking;
    return thinking ? [chunk({ reasoning_content: thinking })] : [];
  }

  function start(index: unknown, content: JsonObject): JsonObject[] {
    const { type } = content;
    const block: Open = { type, input: object(content["input"]), call: calls, said: "", signature: "" };
    open.set(index, block);
    switch (type) {
      case "text":
        return text(content["text"]) ? [chunk({ content: content["text"] })] : [];
      case "thinking":
        block.signature = text(content["signature"]);
        return think(block, text(content["thinking"]));
      case "redacted_thinking":
        return [chunk({ reasoning_details: [encrypted(text(content["data"]), details++)] })];
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

  function go(index: unknown, delta: JsonObject): JsonObject[] {
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
        // Of a tool that the provider runs there is nothing in chat.
        if (block?.type !== "tool_use" || !args) return [];
        block.said += args;
        return [callChunk(block.call, { function: { arguments: args } })];
      }
      default:
        return [];
    }
  }

  /** State goes out whole, once its block is. */
  function stop(index: unknown): JsonObject[] {
    const block = open.get(index);
    open.delete(index);
    if (block?.type === "thinking" && block.signature)
      return [chunk({ reasoning_details: [signedText(block.said, block.signature, details++)] })];
    if (block?.type === "tool_use" && !block.said)
      return [callChunk(block.call, { function: { arguments: stringifyArguments(block.input) } })];
    return [];
  }

  function end(event: JsonObject): JsonObject[] {
    const delta = object(event["delta"]);
    counts = { ...counts, ...given(object(event["usage"])) };
    usage = chatUsage(counts);
    const refusal = explanationOf(delta);
    const choice = { index: 0, delta: refusal ? { refusal } : {}, ...endOf(delta) };
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
          return start(index, object(event["content_block"]));
        case "content_block_delta":
          return go(index, object(event["delta"]));
        case "content_block_stop":
          return stop(index);
        case "message_delta":
          return end(event);
        default:
          return [];
      }
    },
    /** Of an answer that came to its end; before that the provider counts no more than its input. */
    usage: (soFar?: boolean): unknown => usage ?? (soFar ? chatUsage(counts) : undefined),
  };
}
