import { byteLength, type JsonObject, list, object, text } from "#formats";
import { contentText, firstChoice, reasoningText } from "../chat/fields.ts";
import type { ResponseIdentity, StreamWriter } from "../converter.ts";
import { callDelta, callTracker, toolCallId } from "../tool-calls.ts";
import {
  convertUsageFromChat,
  emptyMessage,
  mapFinishReason,
  noUsage,
  textBlock,
  toolBlock,
} from "./convert-response-from-chat.ts";
import { ownDetails, redactedBlock, thinkingBlock } from "./reasoning.ts";

const event = (type: string, fields: JsonObject): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

/** One content block of an answer in progress. */
interface Block {
  /** The `content_block` of its start event; the name of a tool may arrive late. */
  start: JsonObject;
  /** Whether `start` is complete. */
  isReady: boolean;
  isComplete(): boolean;
}

interface QueuedBlock {
  readonly block: Block;
  readonly pending: JsonObject[];
  /** Set when the start event is written. */
  index?: number;
}

/**
 * Writes blocks one after another, as the format requires, although chat servers may interleave the deltas of several tool
 * calls: deltas of a later block wait until all blocks before it are complete.
 */
function blockWriter() {
  const queue: QueuedBlock[] = [];
  let count = 0;

  const open = (queued: QueuedBlock): string => {
    const index = count++;
    queued.index = index;
    const started = event("content_block_start", { index, content_block: queued.block.start });
    return started + queued.pending.map((delta) => event("content_block_delta", { index, delta })).join("");
  };
  const close = ({ index }: QueuedBlock): string => event("content_block_stop", { index });

  /** Closes completed blocks that others follow, and opens the next. */
  const advance = (): string => {
    let events = "";
    for (let head = queue[0]; head; head = queue[0]) {
      if (head.index === undefined) {
        if (!head.block.isReady) break;
        events += open(head);
      }
      if (queue.length === 1 || !head.block.isComplete()) break;
      events += close(head);
      queue.shift();
    }
    return events;
  };

  return {
    last: (): Block | undefined => queue.at(-1)?.block,
    begin(block: Block): string {
      queue.push({ block, pending: [] });
      return advance();
    },
    /** Deltas of a closed block are dropped. */
    add(block: Block, delta: JsonObject): string {
      const queued = queue.find((each) => each.block === block);
      if (!queued) return "";
      if (queued.index !== undefined) return event("content_block_delta", { index: queued.index, delta }) + advance();
      queued.pending.push(delta);
      return advance();
    },
    /** Writes and closes all blocks. */
    end: (): string =>
      queue
        .splice(0)
        .map((each) => (each.index === undefined ? open(each) : "") + close(each))
        .join(""),
  };
}

type BlockWriter = ReturnType<typeof blockWriter>;

interface TextBlock extends Block {
  readonly kind: "text" | "thinking" | "redacted_thinking";
  content: string;
  isSigned: boolean;
}

/** Writes text and thinking. A block continues until another begins. */
function textWriter(blocks: BlockWriter) {
  let last: TextBlock | undefined;
  let bytes = 0;

  const begin = (kind: TextBlock["kind"], start: JsonObject): { block: TextBlock; events: string } => {
    last = { kind, start, content: "", isSigned: false, isReady: true, isComplete: () => true };
    return { block: last, events: blocks.begin(last) };
  };
  const current = (kind: TextBlock["kind"]): TextBlock | undefined =>
    last?.kind === kind && !last.isSigned && blocks.last() === last ? last : undefined;
  const into = (kind: "text" | "thinking"): { block: TextBlock; events: string } => {
    const block = current(kind);
    if (block) return { block, events: "" };
    return begin(kind, kind === "text" ? textBlock("") : thinkingBlock("", ""));
  };

  const think = (thinking: string): string => {
    if (!thinking) return "";
    bytes += byteLength(thinking);
    const { block, events } = into("thinking");
    block.content += thinking;
    return events + blocks.add(block, { type: "thinking_delta", thinking });
  };
  /** Clients expect the whole signature as the last delta of its block. */
  const sign = (signature: string): string => {
    if (!signature) return "";
    const { block, events } = into("thinking");
    block.isSigned = true;
    return events + blocks.add(block, { type: "signature_delta", signature });
  };

  return {
    think,
    write(value: string): string {
      if (!value) return "";
      bytes += byteLength(value);
      const { block, events } = into("text");
      return events + blocks.add(block, { type: "text_delta", text: value });
    },
    /** One of `reasoning_details`. `hasReasoning`: the same delta had its text as reasoning, too. */
    detail(detail: JsonObject, hasReasoning: boolean): string {
      if (detail["type"] === "reasoning.encrypted")
        return begin("redacted_thinking", redactedBlock(text(detail["data"]))).events;
      const thinking = text(detail["text"]);
      const signature = text(detail["signature"]);
      const isWritten = hasReasoning || (signature !== "" && current("thinking")?.content === thinking);
      return (isWritten ? "" : think(thinking)) + sign(signature);
    },
    bytes: () => bytes,
  };
}

function isJson(args: string): boolean {
  // The cheap test avoids parsing long arguments again for each delta.
  if (!["}", "]"].includes(args.trimEnd().at(-1) ?? "")) return false;
  try {
    JSON.parse(args);
    return true;
  } catch {
    return false;
  }
}

interface CallBlock extends Block {
  args: string;
}

/** A call is complete when its arguments are. */
function callBlock(id: string, name: string): CallBlock {
  let checkedLength = 0;
  let isComplete = false;
  const block: CallBlock = {
    start: toolBlock(id, name, {}),
    args: "",
    isReady: name !== "",
    isComplete() {
      if (checkedLength !== block.args.length) isComplete = isJson(block.args);
      checkedLength = block.args.length;
      return isComplete;
    },
  };
  return block;
}

function callWriter(blocks: BlockWriter, identity: ResponseIdentity) {
  const tracker = callTracker((call) => toolCallId(identity.id, 0, call));
  const calls: CallBlock[] = [];
  let bytes = 0;

  return {
    write(delta: JsonObject): string {
      const { name, args, ...key } = callDelta(delta);
      const { call } = tracker.of({ ...key, name });
      let block = calls[call.call];
      let events = "";
      if (block === undefined) {
        block = callBlock(text(call.id), name);
        calls.push(block);
        bytes += byteLength(name);
        events = blocks.begin(block);
      } else if (name !== "" && !block.isReady) {
        block.start = { ...block.start, name };
        block.isReady = true;
        bytes += byteLength(name);
      }
      if (!args) return events;
      block.args += args;
      bytes += byteLength(args);
      return events + blocks.add(block, { type: "input_json_delta", partial_json: args });
    },
    count: tracker.count,
    bytes: () => bytes,
  };
}

/** Writes a Messages stream from chat chunks. */
export function convertStreamFromChat(identity: ResponseIdentity, request: JsonObject): StreamWriter {
  const blocks = blockWriter();
  const texts = textWriter(blocks);
  const calls = callWriter(blocks, identity);
  let hasBegun = false;
  let usage: unknown;
  let lastChoice: JsonObject = {};
  let refusal = false;

  const begin = (): string => {
    if (hasBegun) return "";
    hasBegun = true;
    return event("message_start", { message: { ...emptyMessage(identity), usage: noUsage } });
  };

  const writeDelta = (delta: JsonObject): string => {
    const reasoning = reasoningText(delta);
    const refused = text(delta["refusal"]);
    refusal ||= refused !== "";
    let events = texts.think(reasoning);
    for (const detail of ownDetails(delta["reasoning_details"])) events += texts.detail(detail, reasoning !== "");
    events += texts.write(contentText(delta["content"])) + texts.write(refused);
    for (const call of list(delta["tool_calls"])) events += calls.write(call);
    return events;
  };

  return {
    write(chunk) {
      if (chunk["usage"] != null) usage = chunk["usage"];
      const choice = firstChoice(chunk["choices"]);
      if (!choice) return "";
      if (choice["finish_reason"]) lastChoice = choice;
      return begin() + writeDelta(object(choice["delta"]));
    },
    usage: () => usage,
    outputBytes: () => texts.bytes() + calls.bytes(),
    end(estimate) {
      const stop = mapFinishReason(lastChoice, { calls: calls.count() > 0, refusal }, request);
      return (
        begin() +
        blocks.end() +
        event("message_delta", {
          delta: { ...stop, container: null },
          usage: convertUsageFromChat(usage, estimate),
        }) +
        event("message_stop", {})
      );
    },
  };
}
