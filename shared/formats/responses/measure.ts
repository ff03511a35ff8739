import { invalidValue } from "#errors";
import { byteLength, isSet, type JsonObject, list, object } from "#json";
import { need, refuse, storedAtProvider } from "../errors.ts";
import { type Measure, measureArguments, measureMedia, noteCacheWrite, openaiLifetimes } from "../measure.ts";
import { inputAudio, type MediaSource } from "../media-source.ts";
import { isUploadId } from "../uploads.ts";
import type { ResponsesRequest } from "./request.ts";

/** Refuses references to stored data, and work whose cost has no bound. */
export function refuseUnsupported(request: ResponsesRequest): void {
  for (const field of ["previous_response_id", "conversation", "container"])
    if (isSet(request[field])) throw storedAtProvider(field);
  if (isSet(request["prompt"])) throw storedAtProvider("prompt.id");
  if (isSet(object(request.prompt_cache_options)["comparison_response_id"]))
    throw storedAtProvider("prompt_cache_options.comparison_response_id");

  if (isSet(request["context_management"]))
    refuse("context_management", "it runs at the provider and is not supported");
  const { mode } = object(request.reasoning);
  if (isSet(mode) && mode !== "standard") refuse("reasoning.mode", "only standard is supported");
  if (isSet(request["n"]) && request["n"] !== 1) refuse("n", "this format has one answer");
  const { modalities } = request;
  if (Array.isArray(modalities) && modalities.some((each) => each !== "text"))
    refuse("modalities", "only text is supported");
}

export function responsesMedia(part: JsonObject, path: string): MediaSource | undefined {
  switch (part["type"]) {
    case "input_audio":
      return inputAudio(part, path);
    case "input_image":
      return { kind: "image", holder: part, path, fields: { image_url: "address", file_id: "nothing" } };
    case "input_file": {
      const fields = { file_id: "nothing", file_data: "file", file_url: "address" } as const;
      return { kind: "file", holder: part, path, fields };
    }
    default:
      return undefined;
  }
}

/** The types of parts whose cost has a bound. */
const partTypes = {
  input: ["input_text", "input_image", "input_file", "input_audio"],
  assistant: ["output_text", "refusal", "input_text"],
  output: ["input_text", "input_image", "input_file"],
} as const satisfies Record<string, readonly string[]>;

const inputRoles: readonly unknown[] = ["user", "system", "developer"];

/** Calls of provider-defined tools that the caller runs, their results, and earlier searches by the provider. */
const callerToolItems: ReadonlySet<unknown> = new Set([
  "tool_search_call",
  "tool_search_output",
  "additional_tools",
  "web_search_call",
  "apply_patch_call",
  "apply_patch_call_output",
  "local_shell_call",
  "local_shell_call_output",
  "shell_call",
  "shell_call_output",
]);

function measurePart(part: JsonObject, path: string, measure: Measure): void {
  if (isSet(part["file_id"]) && !isUploadId(part["file_id"])) throw storedAtProvider(`${path}.file_id`);
  noteCacheWrite(part["prompt_cache_breakpoint"], `${path}.prompt_cache_breakpoint`, openaiLifetimes, measure);
  const media = responsesMedia(part, path);
  if (media) measureMedia(media, path, measure);
  else if (part["type"] === "refusal") measure.textBytes += byteLength(need(part, "refusal", path));
  else {
    measure.textBytes += byteLength(need(part, "text", path));
    list(part["annotations"]).forEach((annotation, a) => {
      if (isSet(annotation["file_id"])) throw storedAtProvider(`${path}.annotations[${a}].file_id`);
    });
  }
}

function measureContent(content: unknown, path: string, holder: keyof typeof partTypes, measure: Measure): void {
  if (typeof content === "string") {
    measure.textBytes += byteLength(content);
    return;
  }
  if (!Array.isArray(content)) throw invalidValue(path, `${path} must be a string or a list of parts.`);
  const types: readonly string[] = partTypes[holder];
  list(content).forEach((part, p) => {
    const partPath = `${path}[${p}]`;
    if (!types.includes(need(part, "type", partPath)))
      refuse(`${partPath}.type`, "parts of this type are not supported here");
    measurePart(part, partPath, measure);
  });
}

function measureMessage({ role, content }: JsonObject, path: string, measure: Measure): void {
  if (role !== "assistant" && !inputRoles.includes(role))
    throw invalidValue(`${path}.role`, `${path}.role must be user, system, developer or assistant.`);
  measureContent(content, `${path}.content`, role === "assistant" ? "assistant" : "input", measure);
}

function measureReasoning(item: JsonObject, path: string, measure: Measure): void {
  measure.textBytes += byteLength(item["encrypted_content"]);
  for (const field of ["summary", "content"]) {
    if (!isSet(item[field])) continue;
    if (!Array.isArray(item[field])) throw invalidValue(`${path}.${field}`, `${path}.${field} must be a list.`);
    for (const part of list(item[field])) measure.textBytes += byteLength(part["text"]);
  }
}

function measureItem(item: JsonObject, path: string, measure: Measure): void {
  const { type, role } = item;
  switch (isSet(type) || !isSet(role) ? type : "message") {
    case "message":
      measureMessage(item, path, measure);
      return;
    case "reasoning":
      measureReasoning(item, path, measure);
      return;
    case "function_call":
    case "custom_tool_call":
      for (const field of ["call_id", "name", type === "function_call" ? "arguments" : "input"])
        need(item, field, path);
      measureArguments(item["arguments"], `${path}.arguments`, measure);
      measure.framed = true;
      return;
    case "function_call_output":
    case "custom_tool_call_output":
      need(item, "call_id", path);
      measureContent(item["output"], `${path}.output`, "output", measure);
      measure.framed = true;
      return;
    case "item_reference":
      throw storedAtProvider(`${path}.type`);
  }
  // A reference may omit its type.
  if (!isSet(type) && isSet(item["id"])) throw storedAtProvider(`${path}.id`);
  if (!callerToolItems.has(type)) refuse(`${path}.type`, "items of this type are not supported");
  if (type === "tool_search_call" || type === "tool_search_output") {
    need(item, "call_id", path);
    if (isSet(item["execution"]) && item["execution"] !== "client")
      refuse(`${path}.execution`, "only a search that the caller runs is supported");
  }
  if (isSet(object(item["environment"])["container_id"])) throw storedAtProvider(`${path}.environment.container_id`);
  measure.framed = true;
}

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
