import { noQuirks, type Quirks } from "#catalog";
import { isSet, type JsonObject, list, object } from "#json";
import { type IgnoredParams, ignoredParams } from "../converter.ts";
import { adaptMessages, lacksReasoning } from "./adapt-messages.ts";
import { documentedFields } from "./fields.ts";

/** Adapts a chat request to the server: strict servers refuse fields, roles and message orders that they do not know. */
export function applyQuirks(
  request: JsonObject,
  quirks: Quirks = noQuirks,
  ignored: IgnoredParams = ignoredParams(),
): JsonObject {
  const { messages, tools, ...fields } = withKnownFields(request, quirks, ignored);
  const adapted = {
    ...quirks.added_fields,
    ...fields,
    messages: Array.isArray(messages) ? adaptMessages(messages, quirks, ignored) : messages,
    ...(isSet(tools) && { tools: withParameters(tools) }),
  };
  return mayNotThink(request, quirks) ? withoutThinking(adapted, ignored) : adapted;
}

function withKnownFields(request: JsonObject, quirks: Quirks, ignored: IgnoredParams): JsonObject {
  const { extra_fields, refused_fields } = quirks;
  const isTaken = (field: string) =>
    (documentedFields.has(field) || extra_fields.includes(field)) && !refused_fields.includes(field);
  const fields = Object.entries(request);
  if (fields.every(([field]) => isTaken(field))) return request;
  for (const [field, value] of fields) if (!isTaken(field)) ignored.add(field, value);
  return Object.fromEntries(fields.filter(([field]) => isTaken(field)));
}

/** OpenAI allows functions without parameters, which other servers refuse. */
function withParameters(tools: unknown): unknown {
  const needs = ({ type, function: declared }: JsonObject) =>
    type === "function" && !isSet(object(declared)["parameters"]);
  if (!Array.isArray(tools) || !list(tools).some(needs)) return tools;
  const parameters = { type: "object", properties: {} };
  return tools.map((value: unknown): unknown => {
    const tool = object(value);
    return needs(tool) ? { ...tool, function: { ...object(tool["function"]), parameters } } : value;
  });
}

function mayNotThink({ tool_choice, messages, reasoning_effort }: JsonObject, { thinking_switch }: Quirks): boolean {
  if (!thinking_switch) return false;
  const isForced = tool_choice === "required" || object(tool_choice)["type"] === "function";
  return isForced || reasoning_effort === "none" || lacksReasoning(messages);
}

function withoutThinking({ reasoning_effort, ...request }: JsonObject, ignored: IgnoredParams): JsonObject {
  if (object(request["thinking"])["type"] !== "disabled") ignored.add("thinking", request["thinking"]);
  ignored.add("reasoning_effort", reasoning_effort === "none" ? undefined : reasoning_effort);
  return { ...request, thinking: { type: "disabled" } };
}
