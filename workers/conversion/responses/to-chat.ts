import { invalidValue } from "#errors";
import { given, isSet, type JsonObject, list, logprobsInclude, object, strings, text } from "#formats";
import type { ConvertedRequest } from "../converter.ts";
import { type IgnoredParams, ignoredParams } from "../ignored-params.ts";
import { inputToChat } from "./to-chat-items.ts";

/** Fields that cross, or that the answer honours by itself. What else has a value is left out by name. */
const convertible: ReadonlySet<string> = new Set([
  "model",
  "input",
  "instructions",
  "stream",
  "stream_options",
  "max_output_tokens",
  "temperature",
  "top_p",
  "top_logprobs",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "text",
  "reasoning",
  "include",
  "service_tier",
  "store",
  "background",
  "truncation",
]);
const convertibleTools: readonly string[] = ["type", "name", "description", "parameters", "strict", "format"];

function customFormat(format: JsonObject): JsonObject | undefined {
  const { type, ...grammar } = format;
  if (type === undefined) return undefined;
  return type === "grammar" ? { type, grammar } : { type };
}

function toolsToChat(tools: readonly JsonObject[], left: IgnoredParams): JsonObject[] | undefined {
  if (tools.length === 0) return undefined;
  return tools.map((tool, t) => {
    const { type, name, description, parameters, strict, format } = tool;
    for (const [field, value] of Object.entries(tool)) if (!convertibleTools.includes(field)) left.add(field, value);
    if (type === "function")
      return {
        type,
        function: given({ name: text(name), description, parameters, strict: strict === true ? true : undefined }),
      };
    if (type === "custom")
      return { type, custom: given({ name: text(name), description, format: customFormat(object(format)) }) };
    throw invalidValue(`tools[${t}].type`, `tools[${t}].type: this model takes only function and custom tools.`);
  });
}

function namedChoice(choice: unknown, at: string): JsonObject {
  const { type, name } = object(choice);
  if (type === "function" || type === "custom") return { type, [type]: { name: text(name) } };
  throw invalidValue(`${at}.type`, `${at}.type: this model takes only function and custom tools.`);
}

function choiceToChat(choice: unknown): unknown {
  if (typeof choice === "string" || !isSet(choice)) return choice;
  const { type, mode, tools } = object(choice);
  if (type !== "allowed_tools") return namedChoice(choice, "tool_choice");
  return {
    type,
    allowed_tools: { mode, tools: list(tools).map((tool, t) => namedChoice(tool, `tool_choice.tools[${t}]`)) },
  };
}

function formatToChat(format: JsonObject): unknown {
  const { type, ...schema } = format;
  switch (type) {
    case undefined:
    case "text":
      return undefined;
    case "json_object":
      return { type };
    case "json_schema":
      return { type, json_schema: given(schema) };
    default:
      throw invalidValue("text.format.type", "text.format.type must be text, json_object or json_schema.");
  }
}

/** A tier that is the provider's default is a hint; any other has its price. */
const isHint = (tier: unknown) => tier === "auto" || tier === "default";

function noteHints(request: JsonObject, left: IgnoredParams): void {
  for (const [field, value] of Object.entries(request)) if (!convertible.has(field)) left.add(field, value);
  const { parallel_tool_calls, service_tier, stream_options, reasoning, include, truncation } = request;
  if (parallel_tool_calls === true) left.add("parallel_tool_calls", true);
  if (isHint(service_tier)) left.add("service_tier", true);
  if (truncation === "auto") left.add("truncation", true);
  if (object(stream_options)["include_obfuscation"] === true) left.add("stream_options.include_obfuscation", true);
  for (const [field, value] of Object.entries(object(reasoning)))
    if (field !== "effort") left.add(`reasoning.${field}`, value);
  if (strings(include).some((each) => each !== logprobsInclude)) left.add("include", true);
}

/** Providers refuse even this of a chat request that has no tools. */
const saysNothing = (choice: unknown) => choice === "auto" || choice === "none";

/** A Responses request as a chat request. */
export function toChat(request: JsonObject): ConvertedRequest {
  const left = ignoredParams();
  noteHints(request, left);
  const { instructions, service_tier, top_logprobs } = request;
  const { format, verbosity } = object(request["text"]);
  const system = text(instructions);
  const messages = inputToChat(request["input"], left);
  const tools = toolsToChat(list(request["tools"]), left);
  const chat = given({
    model: request["model"],
    messages: system ? [{ role: "system", content: system }, ...messages] : messages,
    stream: request["stream"],
    max_completion_tokens: request["max_output_tokens"],
    temperature: request["temperature"],
    top_p: request["top_p"],
    logprobs: strings(request["include"]).includes(logprobsInclude) || top_logprobs ? true : undefined,
    top_logprobs: top_logprobs || undefined,
    tools,
    tool_choice: tools || !saysNothing(request["tool_choice"]) ? choiceToChat(request["tool_choice"]) : undefined,
    parallel_tool_calls: tools && request["parallel_tool_calls"] === false ? false : undefined,
    reasoning_effort: object(request["reasoning"])["effort"],
    response_format: formatToChat(object(format)),
    verbosity,
    service_tier: isHint(service_tier) ? undefined : service_tier,
  });
  return { request: chat, ignored: left.names() };
}
