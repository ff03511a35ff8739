import { byteLength, type JsonObject, list, object, text } from "#json";
import { contentText, firstChoice, reasoningText } from "../chat/fields.ts";
import type { ResponseIdentity, StreamWriter } from "../converter.ts";
import { encodeReasoning, opaqueDetails } from "../reasoning-state.ts";
import { callDelta, callTracker, toolCallId } from "../tool-calls.ts";
import { type Block, blockWriter, event, newBlock } from "./block-writer.ts";
import {
  convertUsageFromChat,
  emptyMessage,
  mapFinishReason,
  noUsage,
  textBlock,
  toolBlock,
} from "./convert-response-from-chat.ts";
import { foreignBlocks, ownDetails, redactedBlock, thinkingBlock } from "./reasoning.ts";

export function convertStreamFromChat(identity: ResponseIdentity, request: JsonObject): StreamWriter {
  const blocks = blockWriter();
  const trackCall = callTracker((call) => toolCallId(identity.id, 0, call));
  const calls: Block[] = [];
  let hasBegun = false;
  let usage: unknown;
  let lastChoice: JsonObject = {};
  let refusal = false;
  let bytes = 0;
  /** Details of another provider, which go into the signature of the open thinking block. */
  let foreign: JsonObject[] = [];

  const begin = (): string => {
    if (hasBegun) return "";
    hasBegun = true;
    const usage = { ...noUsage, input_tokens: identity.inputEstimate ?? 0 };
    return event("message_start", { message: { ...emptyMessage(identity), usage } });
  };

  /** A block of text or thinking continues until another begins. */
  const current = (type: "text" | "thinking"): Block | undefined => {
    const last = blocks.last();
    return last?.start["type"] === type && !last.isSigned ? last : undefined;
  };
  /** Thinking that its provider did not sign ends with our signature, so that clients send it back. */
  const seal = (): string => {
    const open = current("thinking");
    if (!open) return "";
    open.isSigned = true;
    const signature = encodeReasoning({ reasoning_details: foreign });
    foreign = [];
    return blocks.add(open, { type: "signature_delta", signature });
  };
  const beginBlock = (block: Block): string => seal() + blocks.begin(block);
  const addTo = (type: "text" | "thinking", content: string, delta: JsonObject): string => {
    const open = current(type);
    const block = open ?? newBlock(type === "text" ? textBlock("") : thinkingBlock("", ""));
    const begun = open ? "" : beginBlock(block);
    if (type === "thinking") block.content += content;
    block.isSigned = delta["type"] === "signature_delta";
    bytes += byteLength(content);
    return begun + blocks.add(block, delta);
  };
  const write = (value: string) => value && addTo("text", value, { type: "text_delta", text: value });
  const think = (thinking: string) => thinking && addTo("thinking", thinking, { type: "thinking_delta", thinking });
  /** Clients expect the whole signature as the last delta of its block. */
  const sign = (signature: string) => signature && addTo("thinking", "", { type: "signature_delta", signature });

  /**
   * Writes one entry of `reasoning_details`. `hasReasoning` means that the same delta also carried its text as reasoning.
   */
  const writeDetail = (detail: JsonObject, hasReasoning: boolean): string => {
    if (detail["type"] === "reasoning.encrypted") return beginBlock(newBlock(redactedBlock(text(detail["data"]))));
    const thinking = text(detail["text"]);
    const signature = text(detail["signature"]);
    const isWritten = hasReasoning || (signature !== "" && current("thinking")?.content === thinking);
    return (isWritten ? "" : think(thinking)) + sign(signature);
  };

  const writeForeign = (detail: JsonObject): string => {
    if (!current("thinking"))
      return foreignBlocks("", [detail])
        .map((block) => beginBlock(newBlock(block)))
        .join("");
    foreign.push(detail);
    return "";
  };

  const writeCall = (delta: JsonObject): string => {
    const { name, args, ...key } = callDelta(delta);
    const { id, call } = trackCall({ ...key, name });
    let block = calls[call];
    let events = "";
    if (block === undefined) {
      block = newBlock(toolBlock(text(id), name, {}), name !== "");
      calls.push(block);
      bytes += byteLength(name);
      events = beginBlock(block);
    } else if (name !== "" && !block.isReady) {
      block.start = { ...block.start, name };
      block.isReady = true;
      bytes += byteLength(name);
    }
    if (!args) return events;
    block.content += args;
    bytes += byteLength(args);
    return events + blocks.add(block, { type: "input_json_delta", partial_json: args });
  };

  const writeDelta = (delta: JsonObject): string => {
    const reasoning = reasoningText(delta);
    const refused = text(delta["refusal"]);
    refusal ||= refused !== "";
    let events = think(reasoning);
    const own = ownDetails(delta["reasoning_details"]);
    for (const detail of own) events += writeDetail(detail, reasoning !== "");
    for (const detail of opaqueDetails(delta["reasoning_details"]))
      if (!own.includes(detail)) events += writeForeign(detail);
    events += write(contentText(delta["content"])) + write(refused);
    for (const call of list(delta["tool_calls"])) events += writeCall(call);
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
    outputBytes: () => bytes,
    end(estimate) {
      const stop = mapFinishReason(lastChoice, { calls: calls.length > 0, refusal }, request);
      const delta = { ...stop, container: null };
      const ended = event("message_delta", { delta, usage: convertUsageFromChat(usage, estimate) });
      return begin() + seal() + blocks.end() + ended + event("message_stop", {});
    },
  };
}
