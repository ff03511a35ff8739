import { invalidValue } from "#errors";
import { inlineOf, needText, refuse } from "#formats";
import { type JsonObject, list, object, text } from "#json";
import type { Breakpoints } from "../cache-control.ts";
import { contentText, reasoningText } from "../chat/fields.ts";
import type { IgnoredParams } from "../converter.ts";
import { argumentsObject } from "../tool-calls.ts";
import { detailsToBlocks } from "./reasoning.ts";

interface Message {
  readonly role: "user" | "assistant" | "system";
  readonly content: JsonObject[];
}

/** The provider refuses blocks that contain only white space. */
const textBlocks = (value: unknown): JsonObject[] => (text(value).trim() ? [{ type: "text", text: value }] : []);

/** Accepts a link or a data URL. */
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

function convertPart(part: JsonObject, path: string): JsonObject[] {
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
}

function convertParts(content: unknown, at: string, marks: Breakpoints): JsonObject[] {
  if (!Array.isArray(content)) return textBlocks(content);
  return list(content).flatMap((part, c) => {
    const path = `${at}[${c}]`;
    return convertPart(part, path).map((block) => ({ ...block, ...marks.of(part, path) }));
  });
}

/** A message's breakpoint goes on its last block. */
function markLast(blocks: JsonObject[], message: JsonObject, at: string, marks: Breakpoints): JsonObject[] {
  const last = blocks.at(-1);
  const takesMark =
    last && !last["cache_control"] && last["type"] !== "thinking" && last["type"] !== "redacted_thinking";
  return takesMark ? [...blocks.slice(0, -1), { ...last, ...marks.of(message, at) }] : blocks;
}

/** The provider refuses ids with other characters. */
const callId = (value: unknown, at: string): string => needText(value, at).replace(/[^\w-]/g, "_");

function convertToolCall(call: JsonObject, at: string): JsonObject {
  const { name: functionName, arguments: args } = object(call["function"]);
  const name = needText(functionName, `${at}.function.name`);
  return { type: "tool_use", id: callId(call["id"], `${at}.id`), name, input: argumentsObject(args) };
}

function convertAssistant(message: JsonObject, at: string, ignored: IgnoredParams, marks: Breakpoints): JsonObject[] {
  const thinking = detailsToBlocks(message["reasoning_details"]).filter(
    (block) => block["type"] === "redacted_thinking" || block["signature"],
  );
  if (thinking.length === 0 && reasoningText(message)) ignored.add("reasoning_content", true);
  return [
    ...thinking,
    ...convertParts(message["content"], `${at}.content`, marks),
    ...textBlocks(message["refusal"]),
    ...list(message["tool_calls"]).map((call, c) => convertToolCall(call, `${at}.tool_calls[${c}]`)),
  ];
}

const unmarked: Breakpoints = { of: () => ({}) };

/** The provider refuses breakpoints inside results, so they go on the result itself. */
function convertToolResult(message: JsonObject, at: string, marks: Breakpoints): JsonObject {
  const content = convertParts(message["content"], `${at}.content`, unmarked);
  const marked = [message, ...list(message["content"])].findLast((each) => each["cache_control"] != null);
  const [only] = content;
  const isOneText = content.length === 1 && only?.["type"] === "text";
  return {
    type: "tool_result",
    tool_use_id: callId(message["tool_call_id"], `${at}.tool_call_id`),
    ...(content.length > 0 && { content: isOneText ? only["text"] : content }),
    ...(marked && marks.of(marked, at)),
  };
}

/** If any part has a breakpoint, each part becomes its own block. */
function convertSystem(message: JsonObject, at: string, marks: Breakpoints): JsonObject[] {
  const { content } = message;
  const isMarked = list(content).some((part) => part["cache_control"] != null);
  const blocks = isMarked ? convertParts(content, `${at}.content`, marks) : textBlocks(contentText(content));
  return markLast(blocks, message, at, marks);
}

/** Joins the blocks into one text unless one of them has a breakpoint. */
const joinSystem = (blocks: readonly JsonObject[]): string | readonly JsonObject[] =>
  blocks.some((block) => block["cache_control"]) ? blocks : blocks.map((block) => text(block["text"])).join("\n\n");

/**
 * Merges messages of the same role. `instruction` is appended to the system prompt. System messages within the conversation
 * keep their place after a user message if the model supports that; otherwise they join the system prompt, as in the
 * provider's own chat interface.
 */
export function convertMessagesFromChat(
  value: unknown,
  lateSystem: boolean,
  ignored: IgnoredParams,
  marks: Breakpoints,
  instruction: string | undefined,
): { system: string | readonly JsonObject[]; messages: Message[] } {
  const messages: Message[] = [];
  const system: JsonObject[] = [];
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
    else system.push(...late);
    late = [];
  };

  list(value).forEach((message, m) => {
    const at = `messages[${m}]`;
    switch (message["role"]) {
      case "system":
      case "developer": {
        const isLate = lateSystem && messages.length > 0;
        (isLate ? late : system).push(...convertSystem(message, at, marks));
        return;
      }
      case "user":
        add("user", markLast(convertParts(message["content"], `${at}.content`, marks), message, at, marks));
        return;
      case "tool":
        add("user", [convertToolResult(message, at, marks)]);
        return;
      case "assistant":
        placeLateSystem();
        add("assistant", markLast(convertAssistant(message, at, ignored, marks), message, at, marks));
        return;
      default:
        refuse(`${at}.role`, "this model does not support this role");
    }
  });
  placeLateSystem();
  if (messages.length === 0) refuse("messages", "at least one user or assistant message must have content");
  trimPrefill(messages.at(-1));
  return { system: joinSystem([...system, ...textBlocks(instruction)]), messages };
}

/** An answer for the model to continue must not end in white space. */
function trimPrefill(last: Message | undefined): void {
  const block = last?.content.at(-1);
  if (last?.role !== "assistant" || block?.["type"] !== "text") return;
  last.content.splice(-1, 1, { ...block, text: text(block["text"]).trimEnd() });
}
