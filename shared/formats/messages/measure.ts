import { invalidValue } from "#errors";
import { refuse, storedAtProvider } from "../errors.ts";
import { byteLength, type JsonObject, object } from "../json.ts";
import { addPart, addUploaded, anthropicLifetimes, type Measure, need, noteCacheWrite } from "../measure.ts";
import { inlinePart, linkedPart } from "../media-part.ts";
import { checkMediaType } from "../media-types.ts";
import type { UploadRef } from "../types.ts";
import { isUploadId, uploadIn } from "../uploads.ts";
import type { CountTokensRequest } from "./request.ts";

const fieldOf = new Map<unknown, string>([
  ["base64", "data"],
  ["url", "url"],
  ["file", "file_id"],
]);

export function messagesUpload(block: JsonObject, at: string): UploadRef | undefined {
  const source = object(block["source"]);
  const field = fieldOf.get(source["type"]);
  return uploadIn(source, field ? [field] : [], `${at}.source`, block["type"] === "image" ? "image" : undefined);
}

/** The blocks that each content may have; the cost of all others has no bound. */
const blocksOf = {
  system: ["text"],
  user: ["text", "image", "document", "search_result", "tool_result"],
  assistant: ["text", "thinking", "redacted_thinking", "tool_use"],
  tool_result: ["text", "image", "document", "search_result", "tool_reference", "browser_state"],
  document: ["text", "image"],
  search_result: ["text"],
} as const satisfies Record<string, readonly string[]>;

export function noteBreakpoint(holder: JsonObject, at: string, measure: Measure): void {
  const path = at ? `${at}.cache_control` : "cache_control";
  noteCacheWrite(holder["cache_control"], path, anthropicLifetimes, measure);
}

function measureSource(kind: "image" | "file", block: JsonObject, at: string, measure: Measure): void {
  const upload = messagesUpload(block, at);
  if (upload) {
    addUploaded(measure, kind, upload);
    return;
  }
  const source = object(block["source"]);
  const path = `${at}.source`;
  switch (source["type"]) {
    case "base64": {
      const data = need(source, "data", path);
      addPart(measure, inlinePart(kind, need(source, "media_type", path), data, `${path}.data`), data.length);
      return;
    }
    case "url": {
      const link = need(source, "url", path);
      if (!/^https?:\/\//i.test(link))
        throw invalidValue(`${path}.url`, `${path}.url must be an http or https address, or the id of an upload.`);
      addPart(measure, linkedPart(kind, "", link, `${path}.url`), 0);
      return;
    }
    case "file":
      throw storedAtProvider(`${path}.type`);
    default:
      refuse(`${path}.type`, "sources of this type are not supported");
  }
}

function measureDocument(block: JsonObject, at: string, measure: Measure): void {
  const source = object(block["source"]);
  measure.features.set("file", at);
  measure.textBytes += byteLength(block["title"]) + byteLength(block["context"]);
  if (source["type"] === "text" && !isUploadId(source["data"]))
    measure.textBytes += byteLength(need(source, "data", `${at}.source`));
  else if (source["type"] === "content") measureContent(source["content"], `${at}.source.content`, "document", measure);
  else measureSource("file", block, at, measure);
}

function measureBlock(block: JsonObject, at: string, measure: Measure): void {
  noteBreakpoint(block, at, measure);
  checkMediaType(object(block["source"])["media_type"], `${at}.source.media_type`);
  switch (block["type"]) {
    case "text":
    case "thinking":
      measure.textBytes += byteLength(need(block, block["type"], at));
      return;
    case "redacted_thinking":
      measure.textBytes += byteLength(need(block, "data", at));
      return;
    case "image":
      measure.features.set("image", at);
      measureSource("image", block, at, measure);
      return;
    case "document":
      measureDocument(block, at, measure);
      return;
    case "search_result":
      measure.textBytes += byteLength(need(block, "title", at)) + byteLength(need(block, "source", at));
      measureContent(block["content"], `${at}.content`, "search_result", measure);
      return;
    case "tool_reference":
      measure.textBytes += byteLength(need(block, "tool_name", at));
      return;
    case "browser_state": {
      const { cache_control: _, ...state } = block;
      const json = JSON.stringify(state);
      // Their cost is unknown.
      if (/"(source|cache_control)":/.test(json)) refuse(at, "media and cache breakpoints are not supported inside it");
      measure.textBytes += byteLength(json);
      return;
    }
    case "tool_use":
      measure.framed = true;
      need(block, "id", at);
      need(block, "name", at);
      if (typeof block["input"] !== "object" || block["input"] === null || Array.isArray(block["input"]))
        throw invalidValue(`${at}.input`, `${at}.input must be an object.`);
      return;
    default:
      measure.framed = true;
      need(block, "tool_use_id", at);
      if (block["content"] != null) measureContent(block["content"], `${at}.content`, "tool_result", measure);
  }
}

function measureContent(content: unknown, at: string, holder: keyof typeof blocksOf, measure: Measure): void {
  if (typeof content === "string") {
    measure.textBytes += byteLength(content);
    return;
  }
  if (!Array.isArray(content)) throw invalidValue(at, `${at} must be a string or a list of blocks.`);
  const types: readonly string[] = blocksOf[holder];
  content.forEach((value: unknown, b) => {
    const block = object(value);
    const path = `${at}[${b}]`;
    if (!types.includes(need(block, "type", path)))
      refuse(`${path}.type`, "blocks of this type are not supported here");
    measureBlock(block, path, measure);
  });
}

export function measureRequest(request: CountTokensRequest, measure: Measure): void {
  if (request.system != null) measureContent(request.system, "system", "system", measure);
  request.messages.forEach(({ role, content }, m) => {
    measureContent(content, `messages[${m}].content`, role, measure);
  });
}
