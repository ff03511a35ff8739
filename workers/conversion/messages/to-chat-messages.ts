import { invalidValue } from "#errors";
import { isUploadId, type JsonObject, list, object, text, writeJson } from "#formats";
import type { IgnoredParams } from "../ignored-params.ts";
import { detailsOf } from "./reasoning.ts";

const textPart = (value: string): JsonObject => ({ type: "text", text: value });
const refuse = (param: string): never => {
  throw invalidValue(param, `${param}: blocks of this type do not cross to this model.`);
};

/** Where media are, as chat names it: an address, a data address, or the id of an upload. */
function addressOf(source: JsonObject, at: string): string {
  switch (source["type"]) {
    case "url":
      return text(source["url"]);
    case "base64":
      if (isUploadId(source["data"])) return source["data"];
      return `data:${text(source["media_type"])};base64,${text(source["data"])}`;
    case "file":
      if (isUploadId(source["file_id"])) return source["file_id"];
  }
  return refuse(`${at}.type`);
}

function noteCitations(block: JsonObject, left: IgnoredParams): void {
  if (object(block["citations"])["enabled"] === true) left.add("citations", true);
}

function documentParts(block: JsonObject, at: string, left: IgnoredParams): JsonObject[] {
  const source = object(block["source"]);
  noteCitations(block, left);
  const title = text(block["title"]);
  const context = text(block["context"]);
  switch (source["type"]) {
    case "text":
      return [textPart([title, context, text(source["data"])].filter(Boolean).join("\n\n"))];
    case "content": {
      const { content } = source;
      const parts =
        typeof content === "string" ? [textPart(content)] : partsOf(list(content), `${at}.source.content`, left);
      const head = [title, context].filter(Boolean).join("\n\n");
      return head ? [textPart(head), ...parts] : parts;
    }
  }
  const address = addressOf(source, `${at}.source`);
  const file = isUploadId(address) ? { file_id: address } : { filename: title || "document.pdf", file_data: address };
  return [...(context ? [textPart(context)] : []), { type: "file", file }];
}

function searchResultText(block: JsonObject): string {
  const texts = list(block["content"]).map((each) => text(each["text"]));
  return [text(block["title"]), text(block["source"]), ...texts].filter(Boolean).join("\n\n");
}

/** A block as the parts of a user's message. */
function blockParts(block: JsonObject, at: string, left: IgnoredParams): JsonObject[] {
  left.add("cache_control", block["cache_control"]);
  switch (block["type"]) {
    case "text":
      return [textPart(text(block["text"]))];
    case "image":
      return [{ type: "image_url", image_url: { url: addressOf(object(block["source"]), `${at}.source`) } }];
    case "document":
      return documentParts(block, at, left);
    case "search_result":
      noteCitations(block, left);
      return [textPart(searchResultText(block))];
    default:
      return refuse(`${at}.type`);
  }
}

const partsOf = (blocks: readonly JsonObject[], at: string, left: IgnoredParams): JsonObject[] =>
  blocks.flatMap((block, b) => blockParts(block, `${at}[${b}]`, left));

/** Chat's tool messages are text: what is none comes in the user's message after them. */
function resultToChat(block: JsonObject, at: string, left: IgnoredParams): { result: JsonObject; media: JsonObject[] } {
  const { content } = block;
  const id = text(block["tool_use_id"]);
  left.add("cache_control", block["cache_control"]);
  const parts = typeof content === "string" ? [textPart(content)] : partsOf(list(content), `${at}.content`, left);
  const isText = (part: JsonObject) => part["type"] === "text";
  const said = parts
    .filter(isText)
    .map((part) => text(part["text"]))
    .join("\n");
  const media = parts.filter((part) => !isText(part));
  // Chat has no mark for a result that is an error.
  const failed = block["is_error"] === true && !/^\W*error/i.test(said);
  return {
    result: { role: "tool", tool_call_id: id, content: failed ? `Error: ${said}` : said },
    media: media.length > 0 ? [textPart(`Of the result of ${id}:`), ...media] : [],
  };
}

function userToChat(blocks: readonly JsonObject[], at: string, left: IgnoredParams): JsonObject[] {
  const results: JsonObject[] = [];
  const parts: JsonObject[] = [];
  blocks.forEach((block, b) => {
    if (block["type"] === "tool_result") {
      const { result, media } = resultToChat(block, `${at}[${b}]`, left);
      results.push(result);
      parts.push(...media);
    } else parts.push(...blockParts(block, `${at}[${b}]`, left));
  });
  if (parts.length === 0) return results;
  const [only] = parts;
  const isOneText = parts.length === 1 && only?.["type"] === "text";
  return [...results, { role: "user", content: isOneText ? only["text"] : parts }];
}

function assistantToChat(blocks: readonly JsonObject[], at: string, left: IgnoredParams): JsonObject[] {
  const calls: JsonObject[] = [];
  let said = "";
  blocks.forEach((block, b) => {
    left.add("cache_control", block["cache_control"]);
    left.add("citations", block["citations"]);
    switch (block["type"]) {
      case "text":
        said += text(block["text"]);
        break;
      case "tool_use":
        calls.push({
          id: text(block["id"]),
          type: "function",
          function: { name: text(block["name"]), arguments: writeJson(object(block["input"]), `${at}[${b}].input`) },
        });
        break;
      case "thinking":
      case "redacted_thinking":
        break;
      default:
        refuse(`${at}[${b}].type`);
    }
  });
  const details = detailsOf(blocks);
  if (!said && calls.length === 0 && details.length === 0) return [];
  return [
    {
      role: "assistant",
      content: said || null,
      ...(calls.length > 0 && { tool_calls: calls }),
      ...(details.length > 0 && { reasoning_details: details }),
    },
  ];
}

export function systemText(system: unknown, left: IgnoredParams): string {
  if (!Array.isArray(system)) return text(system);
  return list(system)
    .map((block) => {
      left.add("cache_control", block["cache_control"]);
      return text(block["text"]);
    })
    .filter(Boolean)
    .join("\n\n");
}

export function messageToChat({ role, content }: JsonObject, m: number, left: IgnoredParams): JsonObject[] {
  const at = `messages[${m}].content`;
  switch (role) {
    case "system":
      return [{ role, content: systemText(content, left) }];
    case "user":
      return Array.isArray(content) ? userToChat(list(content), at, left) : [{ role, content: text(content) }];
    case "assistant":
      return Array.isArray(content) ? assistantToChat(list(content), at, left) : [{ role, content: text(content) }];
    default:
      throw invalidValue(`messages[${m}].role`, `messages[${m}].role must be user, assistant or system.`);
  }
}
