import { invalidValue } from "#errors";
import { given, type JsonObject, list, object } from "#formats";
import type { ConvertedRequest } from "../converter.ts";
import { ignoredParams } from "../ignored-params.ts";
import { convertMessageToChat, systemText } from "./convert-messages-to-chat.ts";
import { convertToolChoiceToChat, convertToolsToChat } from "./prepare-tools.ts";
import { effortOf } from "./reasoning.ts";

/** All other fields are ignored parameters. */
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

function responseFormat(request: JsonObject): unknown {
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
export function convertRequestToChat(request: JsonObject): ConvertedRequest {
  const ignored = ignoredParams();
  for (const [field, value] of Object.entries(request)) if (!convertible.has(field)) ignored.add(field, value);
  const system = systemText(request["system"], ignored);
  const choice = object(request["tool_choice"]);
  const messages = list(request["messages"]).flatMap((message, m) => convertMessageToChat(message, m, ignored));
  const chat = given({
    model: request["model"],
    messages: system ? [{ role: "system", content: system }, ...messages] : messages,
    stream: request["stream"],
    max_tokens: request["max_tokens"],
    temperature: request["temperature"],
    top_p: request["top_p"],
    stop: list(request["stop_sequences"]).length > 0 ? request["stop_sequences"] : undefined,
    tools: convertToolsToChat(list(request["tools"]), ignored),
    tool_choice: convertToolChoiceToChat(choice),
    parallel_tool_calls: choice["disable_parallel_tool_use"] === true ? false : undefined,
    reasoning_effort: effortOf(request),
    response_format: responseFormat(request),
  });
  return { request: chat, ignored: ignored.names() };
}
