import { invalidValue } from "#errors";
import { given, type JsonObject, list, object, text } from "#formats";
import type { ConvertedRequest } from "../converter.ts";
import { type IgnoredParams, ignoredParams } from "../ignored-params.ts";
import { effortOf } from "./effort.ts";
import { messageToChat, systemText } from "./to-chat-messages.ts";

/** Fields that cross. What else has a value is left out by name. */
const convertible: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "system",
  "max_tokens",
  "stream",
  "temperature",
  "top_p",
  "stop_sequences",
  "tools",
  "tool_choice",
  "thinking",
  "output_config",
  "output_format",
]);
const convertibleTools: ReadonlySet<string> = new Set(["type", "name", "description", "input_schema", "strict"]);

function toolsToChat(tools: readonly JsonObject[], left: IgnoredParams): JsonObject[] | undefined {
  if (tools.length === 0) return undefined;
  return tools.map((tool, t) => {
    const { type, name, description, input_schema, strict } = tool;
    if (type != null && type !== "custom")
      throw invalidValue(`tools[${t}].type`, `tools[${t}].type: this model takes only tools that have a schema.`);
    for (const [field, value] of Object.entries(tool)) if (!convertibleTools.has(field)) left.add(field, value);
    return {
      type: "function",
      function: given({
        name: text(name),
        description,
        parameters: object(input_schema),
        strict: strict === true ? true : undefined,
      }),
    };
  });
}

function choiceToChat(choice: JsonObject): unknown {
  switch (choice["type"]) {
    case "auto":
    case "none":
      return choice["type"];
    case "any":
      return "required";
    case "tool":
      return { type: "function", function: { name: text(choice["name"]) } };
    default:
      return undefined;
  }
}

function formatToChat(request: JsonObject): unknown {
  const inConfig = object(request["output_config"])["format"];
  const format = object(inConfig ?? request["output_format"]);
  if (format["type"] === undefined) return undefined;
  if (format["type"] !== "json_schema") {
    const param = inConfig == null ? "output_format.type" : "output_config.format.type";
    throw invalidValue(param, `${param} must be json_schema.`);
  }
  return { type: "json_schema", json_schema: { name: "answer", schema: object(format["schema"]), strict: true } };
}

/** A Messages request as a chat request. */
export function toChat(request: JsonObject): ConvertedRequest {
  const left = ignoredParams();
  for (const [field, value] of Object.entries(request)) if (!convertible.has(field)) left.add(field, value);
  const system = systemText(request["system"], left);
  const choice = object(request["tool_choice"]);
  const messages = list(request["messages"]).flatMap((message, m) => messageToChat(message, m, left));
  const chat = given({
    model: request["model"],
    messages: system ? [{ role: "system", content: system }, ...messages] : messages,
    stream: request["stream"],
    max_tokens: request["max_tokens"],
    temperature: request["temperature"],
    top_p: request["top_p"],
    stop: list(request["stop_sequences"]).length > 0 ? request["stop_sequences"] : undefined,
    tools: toolsToChat(list(request["tools"]), left),
    tool_choice: choiceToChat(choice),
    parallel_tool_calls: choice["disable_parallel_tool_use"] === true ? false : undefined,
    reasoning_effort: effortOf(request),
    response_format: formatToChat(request),
  });
  return { request: chat, ignored: left.names() };
}
