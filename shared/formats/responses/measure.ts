import { invalidValue } from "#errors";
import { byteLength, isSet, type JsonObject, object, text } from "../json.ts";
import { addPart, addUploaded, type Measure, need, noteCacheWrite, openaiLifetimes } from "../measure.ts";
import { addressedPart, inlinePart } from "../media-part.ts";
import { audioMime } from "../media-types.ts";
import { isUploadId } from "../uploads.ts";
import { refuseKept } from "./refuse.ts";
import type { ResponsesRequest } from "./request.ts";
import { responsesUpload } from "./uploads.ts";

/** What may stand in the content of each; all else has no bound that the cost could be worked out from. */
const partsOf = {
  input: ["input_text", "input_image", "input_file", "input_audio"],
  assistant: ["output_text", "refusal", "input_text"],
  output: ["input_text", "input_image", "input_file"],
} as const satisfies Record<string, readonly string[]>;

const inputRoles: readonly unknown[] = ["user", "system", "developer"];

/** Calls of tools that the provider defines and the caller runs, and their results. */
const callersItems: ReadonlySet<unknown> = new Set([
  "apply_patch_call",
  "apply_patch_call_output",
  "local_shell_call",
  "local_shell_call_output",
  "shell_call",
  "shell_call_output",
]);

const kindOf = { input_image: "image", input_audio: "audio", input_file: "file" } as const;

function measureMedia(part: JsonObject, type: keyof typeof kindOf, at: string, measure: Measure): void {
  const kind = kindOf[type];
  measure.features.set(kind, at);
  const upload = responsesUpload(part, at);
  if (upload) {
    addUploaded(measure, kind, upload);
    return;
  }
  if (kind === "audio") {
    const holder = object(part["input_audio"]);
    const path = `${at}.input_audio`;
    const data = need(holder, "data", path);
    addPart(measure, inlinePart(kind, audioMime(text(holder["format"])), data, `${path}.data`), data.length);
    return;
  }
  // Of a file's two fields the provider takes whichever it likes.
  const fields = kind === "image" ? ["image_url"] : ["file_data", "file_url"].filter((field) => isSet(part[field]));
  if (fields.length > 1) throw invalidValue(`${at}.file_url`, `${at}.file_url: give it or file_data, not both.`);
  const [field = "file_data"] = fields;
  const address = need(part, field, at);
  const isBare = field === "file_data" && !/^(https?|data):/i.test(address);
  const path = `${at}.${field}`;
  addPart(measure, isBare ? inlinePart(kind, "", address, path) : addressedPart(kind, address, path), address.length);
}

function measurePart(part: JsonObject, at: string, measure: Measure): void {
  if (isSet(part["file_id"]) && !isUploadId(part["file_id"])) refuseKept(`${at}.file_id`);
  noteCacheWrite(part["prompt_cache_breakpoint"], `${at}.prompt_cache_breakpoint`, openaiLifetimes, measure);
  switch (part["type"]) {
    case "input_image":
    case "input_audio":
    case "input_file":
      measureMedia(part, part["type"], at, measure);
      return;
    case "refusal":
      measure.textBytes += byteLength(need(part, "refusal", at));
      return;
    default:
      measure.textBytes += byteLength(need(part, "text", at));
      if (Array.isArray(part["annotations"]))
        part["annotations"].forEach((annotation: unknown, a) => {
          if (isSet(object(annotation)["file_id"])) refuseKept(`${at}.annotations[${a}].file_id`);
        });
  }
}

function measureContent(content: unknown, at: string, holder: keyof typeof partsOf, measure: Measure): void {
  if (typeof content === "string") {
    measure.textBytes += byteLength(content);
    return;
  }
  if (!Array.isArray(content)) throw invalidValue(at, `${at} must be a string or a list of parts.`);
  const types: readonly string[] = partsOf[holder];
  content.forEach((value: unknown, p) => {
    const part = object(value);
    const path = `${at}[${p}]`;
    if (!types.includes(need(part, "type", path)))
      throw invalidValue(`${path}.type`, `${path}.type: parts of this type are not supported here.`);
    measurePart(part, path, measure);
  });
}

function measureMessage(item: JsonObject, at: string, measure: Measure): void {
  const { role, content } = item;
  if (role !== "assistant" && !inputRoles.includes(role))
    throw invalidValue(`${at}.role`, `${at}.role must be user, system, developer or assistant.`);
  measureContent(content, `${at}.content`, role === "assistant" ? "assistant" : "input", measure);
}

/** State of the provider that comes back, with what it said of it. */
function measureReasoning(item: JsonObject, at: string, measure: Measure): void {
  measure.textBytes += byteLength(item["encrypted_content"]);
  for (const field of ["summary", "content"]) {
    if (!isSet(item[field])) continue;
    if (!Array.isArray(item[field])) throw invalidValue(`${at}.${field}`, `${at}.${field} must be a list.`);
    for (const part of item[field]) measure.textBytes += byteLength(object(part)["text"]);
  }
}

function measureItem(item: JsonObject, at: string, measure: Measure): void {
  const { type, role } = item;
  switch (type) {
    case "message":
      measureMessage(item, at, measure);
      return;
    case "reasoning":
      measureReasoning(item, at, measure);
      return;
    case "function_call":
    case "custom_tool_call":
      for (const field of ["call_id", "name", type === "function_call" ? "arguments" : "input"]) need(item, field, at);
      measure.framed = true;
      return;
    case "function_call_output":
    case "custom_tool_call_output":
      need(item, "call_id", at);
      measureContent(item["output"], `${at}.output`, "output", measure);
      measure.framed = true;
      return;
    case "item_reference":
      refuseKept(`${at}.type`);
  }
  if (!isSet(type) && isSet(role)) {
    measureMessage(item, at, measure);
    return;
  }
  // An id alone is a reference, whose type may be left out.
  if (!isSet(type) && isSet(item["id"])) refuseKept(`${at}.id`);
  if (!callersItems.has(type)) throw invalidValue(`${at}.type`, `${at}.type: items of this type are not supported.`);
  if (isSet(object(item["environment"])["container_id"])) refuseKept(`${at}.environment.container_id`);
  measure.framed = true;
}

/** Notes the media of a request and the bytes that it takes, and refuses what has no bound. */
export function measureRequest(request: ResponsesRequest, measure: Measure): void {
  const { input, instructions, prompt_cache_options } = request;
  noteCacheWrite(prompt_cache_options, "prompt_cache_options", openaiLifetimes, measure);
  measure.textBytes += byteLength(instructions);
  if (typeof input === "string") measure.textBytes += byteLength(input);
  else
    input.forEach((item, i) => {
      measureItem(item, `input[${i}]`, measure);
    });
}
