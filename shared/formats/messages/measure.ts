import { invalidValue } from "#errors";
import { byteLength, type JsonObject, object, text } from "#json";
import { need, refuse, storedAtProvider } from "../errors.ts";
import { anthropicLifetimes, type Measure, measureMedia, noteCacheWrite } from "../measure.ts";
import { type MediaSource, uploadOf } from "../media-source.ts";
import { checkMediaType } from "../media-types.ts";
import { isUploadId } from "../uploads.ts";
import type { CountTokensRequest } from "./request.ts";

const sourceFields: Readonly<Record<string, MediaSource["fields"]>> = {
  base64: { data: "base64" },
  url: { url: "link" },
  file: { file_id: "nothing" },
};

function checkLink(link: string, path: string): void {
  if (!/^https?:\/\//i.test(link))
    throw invalidValue(path, `${path} must be an http or https address, or the id of an upload.`);
}

export function messagesMedia(block: JsonObject, at: string): MediaSource {
  const holder = object(block["source"]);
  const path = `${at}.source`;
  const type = text(holder["type"]);
  const fields = Object.hasOwn(sourceFields, type) ? sourceFields[type] : undefined;
  return {
    kind: block["type"] === "image" ? "image" : "file",
    holder,
    path,
    fields: fields ?? {},
    get mime() {
      return type === "base64" ? need(holder, "media_type", path) : "";
    },
    checkLink,
  };
}

/** The blocks that each kind of content may have. The cost of all others has no bound. */
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

function measureSource(block: JsonObject, at: string, measure: Measure): void {
  const media = messagesMedia(block, at);
  const { type } = media.holder;
  if (!uploadOf(media)) {
    if (type === "file") throw storedAtProvider(`${media.path}.type`);
    if (type !== "base64" && type !== "url") refuse(`${media.path}.type`, "sources of this type are not supported");
  }
  measureMedia(media, at, measure);
}

function measureDocument(block: JsonObject, at: string, measure: Measure): void {
  const source = object(block["source"]);
  measure.features.set("file", at);
  measure.textBytes += byteLength(block["title"]) + byteLength(block["context"]);
  if (source["type"] === "text" && !isUploadId(source["data"]))
    measure.textBytes += byteLength(need(source, "data", `${at}.source`));
  else if (source["type"] === "content") measureContent(source["content"], `${at}.source.content`, "document", measure);
  else measureSource(block, at, measure);
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
      measureSource(block, at, measure);
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
      // The cost of nested media and breakpoints is unknown.
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
