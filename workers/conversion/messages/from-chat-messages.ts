import { invalidValue } from "#errors";
import { inlineOf, type JsonObject, list, object, text } from "#formats";
import { contentText, reasoningText } from "../chat/fields.ts";
import type { IgnoredParams } from "../ignored-params.ts";
import { argumentsObject } from "../tool-calls.ts";
import { blocksOf } from "./reasoning.ts";

interface Turn {
  readonly role: "user" | "assistant" | "system";
  readonly content: JsonObject[];
}

/** The provider takes no block of white space alone. */
const textBlocks = (value: unknown): JsonObject[] => (text(value).trim() ? [{ type: "text", text: value }] : []);

/** `data:<mime>;base64,<data>` or a link, as a source. */
function sourceOf(address: string, at: string): JsonObject {
  const inline = inlineOf(address);
  if (inline) return { type: "base64", media_type: inline.mimeType, data: inline.data };
  if (/^https?:\/\//i.test(address)) return { type: "url", url: address };
  throw invalidValue(at, `${at} must be an http or https address, or a data address in base64.`);
}

function imageOf(part: JsonObject, at: string): JsonObject {
  const holder = part["image_url"];
  const address = text(holder) || text(object(holder)["url"]);
  return { type: "image", source: sourceOf(address, `${at}.image_url.url`) };
}

function documentOf(part: JsonObject, at: string): JsonObject {
  const { filename, file_data } = object(part["file"]);
  const path = `${at}.file.file_data`;
  const source = sourceOf(text(file_data), path);
  const { type, media_type, data } = source;
  const title = text(filename) ? { title: filename } : {};
  if (type === "url" || media_type === "application/pdf") return { type: "document", source, ...title };
  if (text(media_type).startsWith("image/")) return { type: "image", source };
  if (!text(media_type).startsWith("text/"))
    throw invalidValue(path, `${path}: this model takes PDF, text and images.`);
  const plain = Buffer.from(text(data), "base64").toString();
  return { type: "document", source: { type: "text", media_type: "text/plain", data: plain }, ...title };
}

function blocksOfParts(content: unknown, at: string, left: IgnoredParams): JsonObject[] {
  if (!Array.isArray(content)) return textBlocks(content);
  return list(content).flatMap((part, c) => {
    const path = `${at}[${c}]`;
    left.add("cache_control", part["cache_control"]);
    switch (part["type"]) {
      case "text":
        return textBlocks(part["text"]);
      case "refusal":
        return textBlocks(part["refusal"]);
      case "thinking":
        return [];
      case "image_url":
        return [imageOf(part, path)];
      case "file":
        return [documentOf(part, path)];
      default:
        throw invalidValue(`${path}.type`, `${path}.type: this model does not take parts of this type.`);
    }
  });
}

/** Ids of other providers may have signs that this one refuses. */
function callId(value: unknown, at: string): string {
  if (!text(value)) throw invalidValue(at, `${at} must be a string.`);
  return text(value).replace(/[^\w-]/g, "_");
}

function callOf(call: JsonObject, at: string): JsonObject {
  const { name, arguments: args } = object(call["function"]);
  if (!text(name)) throw invalidValue(`${at}.function.name`, `${at}.function.name must be a string.`);
  return { type: "tool_use", id: callId(call["id"], `${at}.id`), name, input: argumentsObject(args) };
}

function assistantBlocks(message: JsonObject, at: string, left: IgnoredParams): JsonObject[] {
  const thinking = blocksOf(message["reasoning_details"]).filter(
    (block) => block["type"] === "redacted_thinking" || block["signature"],
  );
  if (thinking.length === 0 && reasoningText(message)) left.add("reasoning_content", true);
  return [
    ...thinking,
    ...blocksOfParts(message["content"], `${at}.content`, left),
    ...textBlocks(message["refusal"]),
    ...list(message["tool_calls"]).map((call, c) => callOf(call, `${at}.tool_calls[${c}]`)),
  ];
}

function resultOf(message: JsonObject, at: string, left: IgnoredParams): JsonObject {
  const content = blocksOfParts(message["content"], `${at}.content`, left);
  const [only] = content;
  const isOneText = content.length === 1 && only?.["type"] === "text";
  return {
    type: "tool_result",
    tool_use_id: callId(message["tool_call_id"], `${at}.tool_call_id`),
    ...(content.length > 0 && { content: isOneText ? only["text"] : content }),
  };
}

/**
 * Chat's messages as turns, and what stands before them all. A later system message follows the user's turn where the
 * model takes it there; else all go to the beginning, as the provider's own chat interface has it.
 */
export function turnsOf(
  value: unknown,
  lateSystem: boolean,
  left: IgnoredParams,
): { system: string; messages: Turn[] } {
  const messages: Turn[] = [];
  const system: string[] = [];
  let late: JsonObject[] = [];

  const add = (role: Turn["role"], blocks: JsonObject[]) => {
    if (blocks.length === 0) return;
    const last = messages.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else messages.push({ role, content: blocks });
  };
  const settle = () => {
    if (late.length === 0) return;
    if (messages.at(-1)?.role === "user") messages.push({ role: "system", content: late });
    else system.push(...late.map((block) => text(block["text"])));
    late = [];
  };

  list(value).forEach((message, m) => {
    const at = `messages[${m}]`;
    switch (message["role"]) {
      case "system":
      case "developer": {
        const said = contentText(message["content"]);
        if (lateSystem && messages.length > 0) late.push(...textBlocks(said));
        else if (said.trim()) system.push(said);
        return;
      }
      case "user":
        add("user", blocksOfParts(message["content"], `${at}.content`, left));
        return;
      case "tool":
        add("user", [resultOf(message, at, left)]);
        return;
      case "assistant":
        settle();
        add("assistant", assistantBlocks(message, at, left));
        return;
      default:
        throw invalidValue(`${at}.role`, `${at}.role: this model does not take it.`);
    }
  });
  settle();
  if (messages.length === 0) throw invalidValue("messages", "messages: one must have content that is not a system's.");
  trimBeginning(messages.at(-1));
  return { system: system.join("\n\n"), messages };
}

/** An answer that the model is to go on with must not end in white space. */
function trimBeginning(last: Turn | undefined): void {
  const block = last?.content.at(-1);
  if (last?.role !== "assistant" || block?.["type"] !== "text") return;
  last.content.splice(-1, 1, { ...block, text: text(block["text"]).trimEnd() });
}
