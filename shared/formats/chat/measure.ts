import { invalidValue } from "#errors";
import { byteLength, type JsonObject, object, text } from "../json.ts";
import {
  addPart,
  addUploaded,
  anthropicLifetimes,
  type Measure,
  need,
  noteCacheWrite,
  openaiLifetimes,
  outputBytes,
} from "../measure.ts";
import { addressedPart, inlinePart } from "../media-part.ts";
import { audioMime } from "../media-types.ts";
import type { UploadRef } from "../types.ts";
import { isUploadId } from "../uploads.ts";
import type { ChatRequest } from "./request.ts";

/** The upload that a part of a chat message names in place of its content. */
export function chatUpload(part: JsonObject, at: string): UploadRef | undefined {
  switch (part["type"]) {
    case "image_url": {
      const holder = part["image_url"];
      const id = typeof holder === "string" ? holder : object(holder)["url"];
      return isUploadId(id) ? { id, param: `${at}.image_url.url`, kind: "image" } : undefined;
    }
    case "input_audio": {
      const id = object(part["input_audio"])["data"];
      return isUploadId(id) ? { id, param: `${at}.input_audio.data`, kind: "audio" } : undefined;
    }
    case "file": {
      const { file_id, file_data } = object(part["file"]);
      if (isUploadId(file_id)) return { id: file_id, param: `${at}.file.file_id` };
      return isUploadId(file_data) ? { id: file_data, param: `${at}.file.file_data` } : undefined;
    }
    default:
      return undefined;
  }
}

const textParts: readonly string[] = ["text", "refusal", "thinking"];

/** Cache breakpoints as Anthropic or OpenAI define them; conversion drops those that a model does not support. */
function noteBreakpoints(holder: JsonObject, at: string, measure: Measure): void {
  const path = at && `${at}.`;
  noteCacheWrite(holder["cache_control"], `${path}cache_control`, anthropicLifetimes, measure);
  noteCacheWrite(holder["prompt_cache_breakpoint"], `${path}prompt_cache_breakpoint`, openaiLifetimes, measure);
}

const kindOf = { image_url: "image", input_audio: "audio", file: "file" } as const;
const isMedia = (type: string): type is keyof typeof kindOf => Object.hasOwn(kindOf, type);

function measureMedia(part: JsonObject, type: keyof typeof kindOf, at: string, measure: Measure): void {
  const kind = kindOf[type];
  measure.features.set(kind, at);
  const upload = chatUpload(part, at);
  if (upload) {
    addUploaded(measure, kind, upload);
    return;
  }
  const holder = part[type];
  switch (type) {
    case "image_url": {
      // Some clients send the bare address in place of `{url}`.
      const url = typeof holder === "string" ? holder : need(object(holder), "url", `${at}.image_url`);
      addPart(measure, addressedPart(kind, url, `${at}.image_url.url`), url.length);
      return;
    }
    case "input_audio": {
      const { format } = object(holder);
      const data = need(object(holder), "data", `${at}.input_audio`);
      addPart(measure, inlinePart(kind, audioMime(text(format)), data, `${at}.input_audio.data`), data.length);
      return;
    }
    case "file": {
      const data = need(object(holder), "file_data", `${at}.file`);
      const path = `${at}.file.file_data`;
      const isBare = !/^(https?|data):/i.test(data);
      addPart(measure, isBare ? inlinePart(kind, "", data, path) : addressedPart(kind, data, path), data.length);
    }
  }
}

/** Collects the media parts, breakpoints and text of a request; refuses parts whose cost has no bound. */
export function measureRequest(request: ChatRequest, measure: Measure): void {
  noteBreakpoints(request, "", measure);
  noteCacheWrite(request["prompt_cache_options"], "prompt_cache_options", openaiLifetimes, measure);
  request.tools?.forEach((tool, t) => {
    noteBreakpoints(tool, `tools[${t}]`, measure);
    noteBreakpoints(object(tool["function"]), `tools[${t}].function`, measure);
  });
  request.messages.forEach((message, m) => {
    const { content } = message;
    measure.textBytes += outputBytes(message);
    noteBreakpoints(message, `messages[${m}]`, measure);
    if (!Array.isArray(content)) return;
    content.forEach((part, c) => {
      const at = `messages[${m}].content[${c}]`;
      noteBreakpoints(part, at, measure);
      if (isMedia(part.type)) {
        measureMedia(part, part.type, at, measure);
        return;
      }
      if (!textParts.includes(part.type))
        throw invalidValue(`${at}.type`, `${at}.type: parts of this type are not supported.`);
      measure.textBytes += byteLength(part["text"]);
    });
  });
}
