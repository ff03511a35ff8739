import { invalidValue } from "#errors";
import { byteLength, type Loose, object } from "../loose.ts";
import { type Measure, need, newMeasure } from "../measure.ts";
import { isSet } from "../read.ts";
import type { Feature } from "../types.ts";
import { addUpload, isUploadId } from "../uploads.ts";
import { refuseKept } from "./refuse.ts";
import type { ResponsesRequest } from "./request.ts";
import { partUpload } from "./uploads.ts";

/** What may stand in the content of each; all else has no bound that the cost could be worked out from. */
const partsOf = {
  input: ["input_text", "input_image", "input_file", "input_audio"],
  assistant: ["output_text", "refusal", "input_text"],
  output: ["input_text", "input_image", "input_file"],
} as const satisfies Record<string, readonly string[]>;

const inputRoles: readonly unknown[] = ["user", "system", "developer"];

/** Calls of tools that the maker defines and the caller runs, and their results. */
const callersItems: ReadonlySet<unknown> = new Set([
  "apply_patch_call",
  "apply_patch_call_output",
  "local_shell_call",
  "local_shell_call_output",
  "shell_call",
  "shell_call_output",
]);

/** Only data addresses and bare base64 carry the media's own bytes. */
function addressBytes(address: string, at: string): number {
  if (!/^(https?:\/\/|data:)/i.test(address))
    throw invalidValue(at, `${at} must be an http, https or data address, or the id of an upload.`);
  return /^data:/i.test(address) ? address.length : 0;
}

function mediaBytes(part: Loose, at: string): number {
  switch (part["type"]) {
    case "input_image":
      return addressBytes(need(part, "image_url", at), `${at}.image_url`);
    case "input_audio":
      return need(object(part["input_audio"]), "data", `${at}.input_audio`).length;
    default:
      if (isSet(part["file_url"])) return addressBytes(need(part, "file_url", at), `${at}.file_url`);
      return need(part, "file_data", at).length;
  }
}

const featureOf = { input_image: "image", input_audio: "audio", input_file: "file" } as const;

function measureMedia(part: Loose, type: keyof typeof featureOf, at: string, measure: Measure): void {
  const feature = featureOf[type];
  measure.parts[feature]++;
  measure.features.set(feature, at);
  const upload = partUpload(part, at);
  if (upload) addUpload(measure.uploads, upload);
  else measure.mediaBytes += mediaBytes(part, at);
}

function measurePart(part: Loose, at: string, measure: Measure): void {
  if (isSet(part["file_id"]) && !isUploadId(part["file_id"])) refuseKept(`${at}.file_id`);
  noteRetention(part["prompt_cache_breakpoint"], `${at}.prompt_cache_breakpoint`, measure.features);
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

function measureMessage(item: Loose, at: string, measure: Measure): void {
  const { role, content } = item;
  if (role !== "assistant" && !inputRoles.includes(role))
    throw invalidValue(`${at}.role`, `${at}.role must be user, system, developer or assistant.`);
  measureContent(content, `${at}.content`, role === "assistant" ? "assistant" : "input", measure);
}

/** State of the maker that comes back, with what it said of it. */
function measureReasoning(item: Loose, at: string, measure: Measure): void {
  measure.textBytes += byteLength(item["encrypted_content"]);
  for (const field of ["summary", "content"]) {
    if (!isSet(item[field])) continue;
    if (!Array.isArray(item[field])) throw invalidValue(`${at}.${field}`, `${at}.${field} must be a list.`);
    for (const part of item[field]) measure.textBytes += byteLength(object(part)["text"]);
  }
}

function measureItem(item: Loose, at: string, measure: Measure): void {
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

/** Marks that keep a prompt for half a day have a price of their own. */
export function noteRetention(holder: unknown, at: string, features: Map<Feature, string>): void {
  const { ttl } = object(holder);
  if (isSet(ttl) && ttl !== "30m") features.set("cache_retention", `${at}.ttl`);
}

/** Counts the media of a request and the bytes that it takes, and refuses what has no bound. */
export function measureRequest({ input, instructions }: ResponsesRequest, features: Map<Feature, string>): Measure {
  const measure = newMeasure(features);
  measure.textBytes += byteLength(instructions);
  if (typeof input === "string") measure.textBytes += byteLength(input);
  else
    input.forEach((item, i) => {
      measureItem(item, `input[${i}]`, measure);
    });
  return measure;
}
