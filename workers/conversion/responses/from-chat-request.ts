import { invalidValue } from "#errors";
import { given, isSet, type JsonObject, list, logprobsInclude, object, searchFields, text } from "#formats";
import { capOf, commonFields } from "../chat/fields.ts";
import type { ConvertedRequest } from "../converter.ts";
import { type IgnoredParams, ignoredParams } from "../ignored-params.ts";
import { messagesFromChat } from "./from-chat-messages.ts";
import { itemsOf } from "./reasoning.ts";

/** Fields that cross, or that are refused or named by their value. What else has a value is left out by name. */
const convertible: ReadonlySet<string> = new Set([
  ...commonFields,
  "verbosity",
  "service_tier",
  "presence_penalty",
  "frequency_penalty",
  "store",
]);

/** What changes the meaning and has no place in the format. */
const uncrossable = ["stop", "prediction", "audio", "functions", "function_call", ...searchFields];

const refuse = (param: string): never => {
  throw invalidValue(param, `${param} does not cross to this model.`);
};

function refuseUncrossable(request: JsonObject): void {
  for (const field of uncrossable) if (isSet(request[field]) && request[field] !== false) refuse(field);
  const { n, modalities, logit_bias } = request;
  if (isSet(n) && n !== 1) refuse("n");
  if (Array.isArray(modalities) && modalities.some((each) => each !== "text")) refuse("modalities");
  if (Object.keys(object(logit_bias)).length > 0) refuse("logit_bias");
}

/** Hints by their value: what says no more than the default is left out by name, all else crosses or is refused. */
function noteHints(request: JsonObject, left: IgnoredParams): void {
  for (const [field, value] of Object.entries(request)) if (!convertible.has(field)) left.add(field, value);
  for (const field of ["presence_penalty", "frequency_penalty"]) {
    if (isSet(request[field]) && request[field] !== 0) refuse(field);
    left.add(field, request[field]);
  }
  const { parallel_tool_calls, service_tier, store } = request;
  if (parallel_tool_calls === true) left.add("parallel_tool_calls", true);
  if (store === true) left.add("store", true);
  if (isHint(service_tier)) left.add("service_tier", service_tier);
}

const isHint = (tier: unknown) => tier === "auto" || tier === "default";

function toolFromChat(tool: JsonObject, t: number): JsonObject {
  const { type } = tool;
  if (type === "function") {
    const { name, description, parameters, strict } = object(tool["function"]);
    return given({
      type,
      name: text(name),
      description,
      parameters: isSet(parameters) ? parameters : { type: "object", properties: {} },
      // Left out it would mean yes here.
      strict: strict === true,
    });
  }
  if (type !== "custom") return refuse(`tools[${t}].type`);
  const { name, description, format } = object(tool["custom"]);
  const { type: kind, grammar } = object(format);
  return given({
    type,
    name: text(name),
    description,
    format: kind === "grammar" ? { type: kind, ...object(grammar) } : format,
  });
}

function namedChoice(choice: unknown, at: string): JsonObject {
  const { type, function: called, custom } = object(choice);
  if (type === "function") return { type, name: text(object(called)["name"]) };
  if (type === "custom") return { type, name: text(object(custom)["name"]) };
  return refuse(`${at}.type`);
}

function choiceFromChat(choice: unknown): unknown {
  if (typeof choice === "string" || !isSet(choice)) return choice;
  const { type, allowed_tools } = object(choice);
  if (type !== "allowed_tools") return namedChoice(choice, "tool_choice");
  const { mode, tools } = object(allowed_tools);
  const named = list(tools).map((tool, t) => namedChoice(tool, `tool_choice.allowed_tools.tools[${t}]`));
  return { type, mode, tools: named };
}

function formatFromChat(format: JsonObject): JsonObject | undefined {
  const { type, json_schema } = format;
  switch (type) {
    case undefined:
    case "text":
      return undefined;
    case "json_object":
      return { type };
    case "json_schema":
      return given({ type, ...object(json_schema) });
    default:
      return refuse("response_format.type");
  }
}

/** What the answer has beside the text: the provider gives state of its reasoning only to who asks. */
function includeOf(request: JsonObject): string[] {
  const { logprobs, reasoning_effort, messages } = request;
  const reasons =
    (isSet(reasoning_effort) && reasoning_effort !== "none") ||
    list(messages).some((message) => itemsOf(message["reasoning_details"]).length > 0);
  return [...(logprobs === true ? [logprobsInclude] : []), ...(reasons ? ["reasoning.encrypted_content"] : [])];
}

/** A chat request as the format's provider takes it. Nothing is kept there. */
export function fromChatRequest(request: JsonObject): ConvertedRequest {
  refuseUncrossable(request);
  const left = ignoredParams();
  noteHints(request, left);
  const { reasoning_effort, verbosity, service_tier, logprobs, top_logprobs } = request;
  const tools = list(request["tools"]).map(toolFromChat);
  const include = includeOf(request);
  const textConfig = given({ format: formatFromChat(object(request["response_format"])), verbosity });
  const crossed = given({
    model: request["model"],
    input: messagesFromChat(list(request["messages"]), left),
    stream: request["stream"],
    max_output_tokens: capOf(request),
    temperature: request["temperature"],
    top_p: request["top_p"],
    top_logprobs: logprobs === true ? top_logprobs : undefined,
    tools: tools.length > 0 ? tools : undefined,
    tool_choice: choiceFromChat(request["tool_choice"]),
    parallel_tool_calls: request["parallel_tool_calls"] === false ? false : undefined,
    text: Object.keys(textConfig).length > 0 ? textConfig : undefined,
    reasoning: isSet(reasoning_effort) ? { effort: reasoning_effort } : undefined,
    service_tier: isHint(service_tier) ? undefined : service_tier,
    include: include.length > 0 ? include : undefined,
    store: false,
  });
  return { request: crossed, ignored: left.names() };
}
