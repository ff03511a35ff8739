import { invalidValue } from "#errors";
import { isSet, type JsonObject, list, object, text } from "#formats";
import type { IgnoredParams } from "../ignored-params.ts";
import { readCall, refusalPart } from "./items.ts";
import { itemsOf } from "./reasoning.ts";

/** The provider takes no more characters as the id of a call; both ends of a longer one make it unlike others. */
const longestId = 64;
const callId = (id: unknown): string => {
  const given = text(id);
  return given.length <= longestId ? given : given.slice(0, longestId / 2) + given.slice(-longestId / 2);
};

const refuse = (param: string): never => {
  throw invalidValue(param, `${param}: parts of this type do not cross to this model.`);
};

function fileFromChat(part: JsonObject, at: string): JsonObject {
  const { file_data, filename } = object(part["file"]);
  const data = text(file_data);
  if (!data) throw invalidValue(`${at}.file.file_data`, `${at}.file.file_data must be a string.`);
  if (/^https?:\/\//i.test(data)) return { type: "input_file", file_url: data };
  return { type: "input_file", filename: text(filename) || "document.pdf", file_data: data };
}

function partFromChat(part: JsonObject, at: string, left: IgnoredParams): JsonObject {
  left.add("cache_control", part["cache_control"]);
  left.add("prompt_cache_breakpoint", part["prompt_cache_breakpoint"]);
  switch (part["type"]) {
    case "text":
      return { type: "input_text", text: text(part["text"]) };
    case "image_url": {
      const holder = part["image_url"];
      const { url, detail } = object(holder);
      return { type: "input_image", image_url: text(holder) || text(url), detail: isSet(detail) ? detail : "auto" };
    }
    case "input_audio":
      return { type: "input_audio", input_audio: object(part["input_audio"]) };
    case "file":
      return fileFromChat(part, at);
    default:
      return refuse(`${at}.type`);
  }
}

const contentFromChat = (content: unknown, at: string, left: IgnoredParams): string | JsonObject[] =>
  Array.isArray(content) ? list(content).map((part, p) => partFromChat(part, `${at}[${p}]`, left)) : text(content);

/** What the assistant said. Thinking in parts of its own is another provider's. */
function saidFromChat({ content, refusal }: JsonObject, at: string): JsonObject[] {
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : list(content);
  const said: JsonObject[] = [];
  parts.forEach((part, p) => {
    if (part["type"] === "text" && text(part["text"]))
      said.push({ type: "output_text", text: text(part["text"]), annotations: [] });
    else if (part["type"] === "refusal") said.push(refusalPart(text(part["refusal"])));
    else if (part["type"] !== "text" && part["type"] !== "thinking") refuse(`${at}.content[${p}].type`);
  });
  if (text(refusal)) said.push(refusalPart(text(refusal)));
  return said;
}

function assistantFromChat(message: JsonObject, at: string, customIds: Set<string>): JsonObject[] {
  const said = saidFromChat(message, at);
  const calls = list(message["tool_calls"]).map((call): JsonObject => {
    const { isCustom, name, input } = readCall(call);
    const id = callId(call["id"]);
    if (!isCustom) return { type: "function_call", call_id: id, name, arguments: input };
    customIds.add(id);
    return { type: "custom_tool_call", call_id: id, name, input };
  });
  const spoken = said.length > 0 ? [{ type: "message", role: "assistant", content: said }] : [];
  return [...itemsOf(message["reasoning_details"]), ...spoken, ...calls];
}

/** The messages of a chat request as items. */
export function messagesFromChat(messages: readonly JsonObject[], left: IgnoredParams): JsonObject[] {
  /** Results are told apart by what was called. */
  const customIds = new Set<string>();
  return messages.flatMap((message, m): JsonObject[] => {
    const at = `messages[${m}]`;
    const { role, content, name } = message;
    left.add("name", name);
    switch (role) {
      case "system":
      case "developer":
      case "user":
        return [{ type: "message", role, content: contentFromChat(content, `${at}.content`, left) }];
      case "assistant":
        if (isSet(message["function_call"]))
          throw invalidValue(`${at}.function_call`, `${at}.function_call: use tool_calls for this model.`);
        return assistantFromChat(message, at, customIds);
      case "tool": {
        const id = callId(message["tool_call_id"]);
        const type = customIds.has(id) ? "custom_tool_call_output" : "function_call_output";
        return [{ type, call_id: id, output: contentFromChat(content, `${at}.content`, left) }];
      }
      default:
        throw invalidValue(`${at}.role`, `${at}.role: messages of this role do not cross to this model.`);
    }
  });
}
