import { logprobsInclude, needText, refuse } from "#formats";
import { isSet, type JsonObject, list, object, omitNullish, text } from "#json";
import {
  capOf,
  checkFields,
  commonFields,
  isEmpty,
  isStandardTier,
  type RefusedField,
  refusedEverywhere,
  refuseParam,
} from "../chat/fields.ts";
import type { FormatConverter, IgnoredParams } from "../converter.ts";
import { argumentsText } from "../tool-calls.ts";
import { refusalPart } from "./output-items.ts";
import { prepareTools } from "./prepare-tools.ts";
import { includeState, reasoningItemsOf } from "./reasoning-state.ts";

/** Fields of the same name and meaning in both formats. */
const sameFields = ["metadata", "prompt_cache_key", "safety_identifier", "user"] as const;

/** Fields that are converted or checked here; all others are ignored by name. */
const convertible: ReadonlySet<string> = new Set([
  ...commonFields,
  ...sameFields,
  "verbosity",
  "service_tier",
  "presence_penalty",
  "frequency_penalty",
  "store",
]);

const refused: readonly RefusedField[] = [
  ["n", (value) => value == null || value === 1],
  ...["stop", "audio", "function_call", "presence_penalty", "frequency_penalty"].map(
    (field): RefusedField => [field, isEmpty],
  ),
  ...refusedEverywhere,
];

const refusePart = (param: string): never => refuse(param, "parts of this type are not supported by this model");

/** The provider accepts call ids up to this length; keeping both ends of a longer one keeps it unique. */
const maxCallIdLength = 64;
const callId = (value: unknown): string => {
  const id = text(value);
  return id.length <= maxCallIdLength ? id : id.slice(0, maxCallIdLength / 2) + id.slice(-maxCallIdLength / 2);
};

function fileFromChat(part: JsonObject, path: string): JsonObject {
  const { file_data, filename } = object(part["file"]);
  const data = needText(file_data, `${path}.file.file_data`);
  if (/^https?:\/\//i.test(data)) return { type: "input_file", file_url: data };
  return { type: "input_file", filename: text(filename) || "document.pdf", file_data: data };
}

function partFromChat(part: JsonObject, path: string, ignored: IgnoredParams): JsonObject {
  for (const field of ["cache_control", "prompt_cache_breakpoint"]) ignored.add(field, part[field]);
  switch (part["type"]) {
    case "text":
      return { type: "input_text", text: text(part["text"]) };
    case "image_url": {
      const image = part["image_url"];
      const { url, detail } = object(image);
      return { type: "input_image", image_url: text(image) || text(url), detail: isSet(detail) ? detail : "auto" };
    }
    case "input_audio":
      return { type: "input_audio", input_audio: object(part["input_audio"]) };
    case "file":
      return fileFromChat(part, path);
    default:
      return refusePart(`${path}.type`);
  }
}

const contentFromChat = (content: unknown, path: string, ignored: IgnoredParams): string | JsonObject[] =>
  Array.isArray(content) ? list(content).map((part, p) => partFromChat(part, `${path}[${p}]`, ignored)) : text(content);

function readCall(call: JsonObject) {
  const isCustom = call["type"] === "custom" || call["custom"] != null;
  const { name, input, arguments: args } = object(isCustom ? call["custom"] : call["function"]);
  return { isCustom, name: text(name), input: argumentsText(isCustom ? input : args) };
}

/** Thinking parts are dropped: they belong to another provider. */
function assistantContentFromChat({ content, refusal }: JsonObject, path: string): JsonObject[] {
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : list(content);
  const converted: JsonObject[] = [];
  parts.forEach((part, p) => {
    if (part["type"] === "text" && text(part["text"]))
      converted.push({ type: "output_text", text: text(part["text"]), annotations: [] });
    else if (part["type"] === "refusal") converted.push(refusalPart(text(part["refusal"])));
    else if (part["type"] !== "text" && part["type"] !== "thinking") refusePart(`${path}.content[${p}].type`);
  });
  if (text(refusal)) converted.push(refusalPart(text(refusal)));
  return converted;
}

/** Reasoning items are sent only with `hiddenReasoning`: models that do not reason refuse them. */
function assistantFromChat(
  message: JsonObject,
  path: string,
  customCallIds: Set<string>,
  hiddenReasoning: boolean | undefined,
): JsonObject[] {
  if (isSet(message["function_call"])) refuse(`${path}.function_call`, "use tool_calls for this model");
  const content = assistantContentFromChat(message, path);
  const calls = list(message["tool_calls"]).map((call): JsonObject => {
    const { isCustom, name, input } = readCall(call);
    const id = callId(call["id"]);
    if (!isCustom) return { type: "function_call", call_id: id, name, arguments: input };
    customCallIds.add(id);
    return { type: "custom_tool_call", call_id: id, name, input };
  });
  const messages = content.length > 0 ? [{ type: "message", role: "assistant", content }] : [];
  const reasoning = hiddenReasoning ? reasoningItemsOf(message["reasoning_details"]) : [];
  return [...reasoning, ...messages, ...calls];
}

function messagesFromChat(
  messages: readonly JsonObject[],
  hiddenReasoning: boolean | undefined,
  ignored: IgnoredParams,
): JsonObject[] {
  /** The type of a result depends on its call's. */
  const customCallIds = new Set<string>();
  return messages.flatMap((message, m): JsonObject[] => {
    const path = `messages[${m}]`;
    const { role, content, name } = message;
    ignored.add("name", name);
    switch (role) {
      case "system":
      case "developer":
      case "user":
        return [{ type: "message", role, content: contentFromChat(content, `${path}.content`, ignored) }];
      case "assistant":
        return assistantFromChat(message, path, customCallIds, hiddenReasoning);
      case "tool": {
        const id = callId(message["tool_call_id"]);
        const type = customCallIds.has(id) ? "custom_tool_call_output" : "function_call_output";
        return [{ type, call_id: id, output: contentFromChat(content, `${path}.content`, ignored) }];
      }
      default:
        return refuse(`${path}.role`, "messages of this role are not supported by this model");
    }
  });
}

function responseFormatFromChat({ type, json_schema }: JsonObject): JsonObject | undefined {
  if (type === undefined || type === "text") return undefined;
  if (type === "json_object") return { type };
  return type === "json_schema" ? omitNullish({ type, ...object(json_schema) }) : refuseParam("response_format.type");
}

export const convertRequestFromChat: FormatConverter["requestFromChat"] = (request, { hiddenReasoning } = {}) => {
  const ignored = checkFields(request, refused, convertible);
  for (const field of ["presence_penalty", "frequency_penalty"]) ignored.add(field, request[field]);
  for (const field of ["parallel_tool_calls", "store"]) if (request[field] === true) ignored.add(field, true);
  if (isStandardTier(request["service_tier"])) ignored.add("service_tier", request["service_tier"]);
  const { reasoning_effort, verbosity, service_tier, logprobs, top_logprobs } = request;
  const textConfig = omitNullish({ format: responseFormatFromChat(object(request["response_format"])), verbosity });
  const include = includeState(logprobs === true ? [logprobsInclude] : [], hiddenReasoning);
  const converted = omitNullish({
    model: request["model"],
    input: messagesFromChat(list(request["messages"]), hiddenReasoning, ignored),
    stream: request["stream"],
    max_output_tokens: capOf(request),
    temperature: request["temperature"],
    top_p: request["top_p"],
    top_logprobs: logprobs === true ? top_logprobs : undefined,
    ...prepareTools(request),
    text: Object.keys(textConfig).length > 0 ? textConfig : undefined,
    reasoning: isSet(reasoning_effort) ? { effort: reasoning_effort } : undefined,
    service_tier: isStandardTier(service_tier) ? undefined : service_tier,
    ...Object.fromEntries(sameFields.map((field) => [field, request[field]])),
    include: include.length > 0 ? include : undefined,
    store: false,
  });
  return { request: converted, ignored: ignored.names() };
};
