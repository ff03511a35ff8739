import { invalidValue } from "#errors";
import { inlineOf, type JsonObject, list, needText, object, refuse, text } from "#formats";
import { contentText, reasoningText } from "../chat/fields.ts";
import type { IgnoredParams } from "../converter.ts";
import { argumentsObject } from "../tool-calls.ts";
import { detailsToBlocks } from "./reasoning.ts";

interface Message {
  readonly role: "user" | "assistant" | "system";
  readonly content: JsonObject[];
}

/** The provider refuses blocks of white space alone. */
const textBlocks = (value: unknown): JsonObject[] => (text(value).trim() ? [{ type: "text", text: value }] : []);

/** From a link or a data address. */
function convertSource(address: string, at: string): JsonObject {
  const inline = inlineOf(address);
  if (inline) return { type: "base64", media_type: inline.mimeType, data: inline.data };
  if (/^https?:\/\//i.test(address)) return { type: "url", url: address };
  throw invalidValue(at, `${at} must be an http or https address, or a data address in base64.`);
}

function convertImage(part: JsonObject, at: string): JsonObject {
  const holder = part["image_url"];
  const address = text(holder) || text(object(holder)["url"]);
  return { type: "image", source: convertSource(address, `${at}.image_url.url`) };
}

function convertFile(part: JsonObject, at: string): JsonObject {
  const { filename, file_data } = object(part["file"]);
  const path = `${at}.file.file_data`;
  const source = convertSource(text(file_data), path);
  const { type, media_type, data } = source;
  const title = text(filename) ? { title: filename } : {};
  if (type === "url" || media_type === "application/pdf") return { type: "document", source, ...title };
  if (text(media_type).startsWith("image/")) return { type: "image", source };
  if (!text(media_type).startsWith("text/")) refuse(path, "this model supports PDF, text and images");
  const plain = Buffer.from(text(data), "base64").toString();
  return { type: "document", source: { type: "text", media_type: "text/plain", data: plain }, ...title };
}

function convertParts(content: unknown, at: string, ignored: IgnoredParams): JsonObject[] {
  if (!Array.isArray(content)) return textBlocks(content);
  return list(content).flatMap((part, c) => {
    const path = `${at}[${c}]`;
    ignored.add("cache_control", part["cache_control"]);
    switch (part["type"]) {
      case "text":
        return textBlocks(part["text"]);
      case "refusal":
        return textBlocks(part["refusal"]);
      case "thinking":
        return [];
      case "image_url":
        return [convertImage(part, path)];
      case "file":
        return [convertFile(part, path)];
      default:
        return refuse(`${path}.type`, "this model does not support parts of this type");
    }
  });
}

/** The provider refuses ids with other characters. */
const callId = (value: unknown, at: string): string => needText(value, at).replace(/[^\w-]/g, "_");

function convertToolCall(call: JsonObject, at: string): JsonObject {
  const { name: functionName, arguments: args } = object(call["function"]);
  const name = needText(functionName, `${at}.function.name`);
  return { type: "tool_use", id: callId(call["id"], `${at}.id`), name, input: argumentsObject(args) };
}

function convertAssistant(message: JsonObject, at: string, ignored: IgnoredParams): JsonObject[] {
  const thinking = detailsToBlocks(message["reasoning_details"]).filter(
    (block) => block["type"] === "redacted_thinking" || block["signature"],
  );
  if (thinking.length === 0 && reasoningText(message)) ignored.add("reasoning_content", true);
  return [
    ...thinking,
    ...convertParts(message["content"], `${at}.content`, ignored),
    ...textBlocks(message["refusal"]),
    ...list(message["tool_calls"]).map((call, c) => convertToolCall(call, `${at}.tool_calls[${c}]`)),
  ];
}

function convertToolResult(message: JsonObject, at: string, ignored: IgnoredParams): JsonObject {
  const content = convertParts(message["content"], `${at}.content`, ignored);
  const [only] = content;
  const isOneText = content.length === 1 && only?.["type"] === "text";
  return {
    type: "tool_result",
    tool_use_id: callId(message["tool_call_id"], `${at}.tool_call_id`),
    ...(content.length > 0 && { content: isOneText ? only["text"] : content }),
  };
}

/**
 * Merges messages of the same role. System messages within the conversation keep their place, after a user message, if the
 * model supports that; else they join the system prompt, as in the provider's own chat interface.
 */
export function convertMessagesFromChat(
  value: unknown,
  lateSystem: boolean,
  ignored: IgnoredParams,
): { system: string; messages: Message[] } {
  const messages: Message[] = [];
  const system: string[] = [];
  let late: JsonObject[] = [];

  const add = (role: Message["role"], blocks: JsonObject[]) => {
    if (blocks.length === 0) return;
    const last = messages.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else messages.push({ role, content: blocks });
  };
  const placeLateSystem = () => {
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
        const content = contentText(message["content"]);
        if (lateSystem && messages.length > 0) late.push(...textBlocks(content));
        else if (content.trim()) system.push(content);
        return;
      }
      case "user":
        add("user", convertParts(message["content"], `${at}.content`, ignored));
        return;
      case "tool":
        add("user", [convertToolResult(message, at, ignored)]);
        return;
      case "assistant":
        placeLateSystem();
        add("assistant", convertAssistant(message, at, ignored));
        return;
      default:
        refuse(`${at}.role`, "this model does not support this role");
    }
  });
  placeLateSystem();
  if (messages.length === 0) refuse("messages", "at least one user or assistant message must have content");
  trimPrefill(messages.at(-1));
  return { system: system.join("\n\n"), messages };
}

/** An answer for the model to continue must not end in white space. */
function trimPrefill(last: Message | undefined): void {
  const block = last?.content.at(-1);
  if (last?.role !== "assistant" || block?.["type"] !== "text") return;
  last.content.splice(-1, 1, { ...block, text: text(block["text"]).trimEnd() });
}
