import { invalidValue } from "#errors";
import { given, type JsonObject, list, number, object, searchFields, text } from "#formats";
import { capOf, commonFields, isEmpty, isStandardTier, isTextOnly, stopSequencesOf } from "../chat/fields.ts";
import type { ConvertedRequest } from "../converter.ts";
import { type IgnoredParams, ignoredParams } from "../ignored-params.ts";
import { thinkingOf } from "./effort.ts";
import { turnsOf } from "./from-chat-messages.ts";
import { closedSchema } from "./json-schema.ts";
import { type Generation, generationOf } from "./model-capabilities.ts";

/** Of a request that names no cap; the format must have one. */
const defaultCap = 4096;

/** Fields that cross, or whose only value that gets here means nothing to Messages. */
const convertible: ReadonlySet<string> = new Set([...commonFields, "top_k", "stop", "thinking"]);

/** What changes the meaning and cannot cross, by the values that mean nothing. */
const refused: readonly (readonly [field: string, isHarmless: (value: unknown) => boolean])[] = [
  ["n", (value) => value == null || value === 1],
  ["logprobs", isEmpty],
  ["top_logprobs", isEmpty],
  ["modalities", isTextOnly],
  ["prediction", isEmpty],
  ["presence_penalty", isEmpty],
  ["frequency_penalty", isEmpty],
  ["logit_bias", isEmpty],
  ["functions", isEmpty],
  ...searchFields.map((field) => [field, isEmpty] as const),
  ["service_tier", isStandardTier],
];

function refuse(request: JsonObject): void {
  for (const [field, isHarmless] of refused)
    if (!isHarmless(request[field])) throw invalidValue(field, `${field}: this model does not take it.`);
}

function toolOf(value: JsonObject, t: number): JsonObject {
  const at = `tools[${t}]`;
  if (value["type"] !== "function")
    throw invalidValue(`${at}.type`, `${at}.type: this model takes only tools of type function.`);
  const { name, description, parameters, strict } = object(value["function"]);
  if (typeof name !== "string" || !name)
    throw invalidValue(`${at}.function.name`, `${at}.function.name must be a string.`);
  return given({
    name,
    description,
    input_schema: { type: "object", ...object(parameters) },
    strict: strict === true ? true : undefined,
  });
}

interface Tools {
  readonly fields: JsonObject;
  /** The model must call one. */
  readonly isForced: boolean;
}

const namesOf = (tools: readonly JsonObject[]): ReadonlySet<unknown> =>
  new Set(tools.map((tool) => object(tool["function"])["name"]));

function choiceOf(choice: unknown): { type: string; name?: string; only?: ReadonlySet<unknown> } {
  const { type, function: named, allowed_tools } = object(choice);
  if (choice == null || choice === "auto") return { type: "auto" };
  if (choice === "none") return { type: "none" };
  if (choice === "required") return { type: "any" };
  const { name } = object(named);
  if (type === "function" && typeof name === "string") return { type: "tool", name };
  if (type === "allowed_tools") {
    const { mode, tools } = object(allowed_tools);
    return { type: mode === "required" ? "any" : "auto", only: namesOf(list(tools)) };
  }
  throw invalidValue("tool_choice", "tool_choice: this model does not take it.");
}

function toolsOf(request: JsonObject, { forcedTools }: Generation): Tools {
  const tools = list(request["tools"]).map(toolOf);
  const { type, name, only } = choiceOf(request["tool_choice"]);
  const isForced = type === "any" || type === "tool";
  if (isForced && (tools.length === 0 || !forcedTools))
    throw invalidValue("tool_choice", "tool_choice: this model cannot be made to call a tool; leave it the choice.");
  if (tools.length === 0) return { fields: {}, isForced };
  const alone = request["parallel_tool_calls"] === false && type !== "none";
  return {
    fields: {
      tools: only ? tools.filter((tool) => only.has(tool["name"])) : tools,
      ...((type !== "auto" || alone) && {
        tool_choice: given({ type, name, disable_parallel_tool_use: alone ? true : undefined }),
      }),
    },
    isForced,
  };
}

/** Sampling goes only to models that take it, and not beside thinking; of temperature and top_p one. */
function samplingOf(request: JsonObject, takesIt: boolean, left: IgnoredParams): JsonObject {
  const { temperature, top_p, top_k } = request;
  if (!takesIt) {
    left.add("top_k", top_k);
    if (temperature !== 1) left.add("temperature", temperature);
    if (top_p !== 1) left.add("top_p", top_p);
    return {};
  }
  const warmth = number(temperature);
  const nucleus = number(top_p);
  // As the provider's own chat interface does.
  if (warmth !== undefined && warmth > 1) left.add("temperature", true);
  if (warmth !== undefined && nucleus !== undefined && nucleus !== 1) left.add("top_p", true);
  return given({
    temperature: warmth === undefined ? undefined : Math.min(1, warmth),
    top_p: warmth === undefined ? nucleus : undefined,
    top_k: number(top_k),
  });
}

function stopSequences(request: JsonObject): readonly unknown[] | undefined {
  const sequences = stopSequencesOf(request);
  if (sequences.some((each) => !text(each).trim()))
    throw invalidValue("stop", "stop: this model takes no sequence of white space alone.");
  return sequences.length > 0 ? sequences : undefined;
}

/** A JSON object without a schema has no field in Messages: the model is told. */
const jsonOnly = "Answer with one JSON object and nothing else: no explanation, no code fence.";

function formatOf(responseFormat: unknown): { output_config?: JsonObject; order?: string } {
  const { type, json_schema } = object(responseFormat);
  if (type === undefined || type === "text") return {};
  if (type === "json_object") return { order: jsonOnly };
  if (type !== "json_schema")
    throw invalidValue("response_format.type", "response_format.type: this model does not take it.");
  const { schema } = object(json_schema);
  const format = { type: "json_schema", schema: closedSchema(schema, "response_format.json_schema.schema") };
  return { output_config: { format } };
}

function thinkingFields(
  request: JsonObject,
  cap: number,
  isForced: boolean,
  generation: Generation,
  left: IgnoredParams,
): JsonObject {
  const { thinking, reasoning_effort } = request;
  // The provider's own chat interface takes its field as it is.
  if (typeof object(thinking)["type"] === "string") return { thinking };
  const effort = text(reasoning_effort);
  if (!effort) return {};
  const fields = thinkingOf(effort, cap, generation);
  // Who thinks first cannot be made to call a tool.
  const { thinking: _, ...rest } = fields ?? {};
  if (fields && !(isForced && thinks(fields))) return fields;
  if (Object.keys(rest).length === 0) left.add("reasoning_effort", true);
  return rest;
}

const thinks = (fields: JsonObject): boolean =>
  ["enabled", "adaptive"].includes(text(object(fields["thinking"])["type"]));

/** A chat request as a Messages request. */
export function fromChatRequest(request: JsonObject): ConvertedRequest {
  refuse(request);
  const left = ignoredParams();
  for (const [field, value] of Object.entries(request)) if (!convertible.has(field)) left.add(field, value);
  if (request["parallel_tool_calls"] === true) left.add("parallel_tool_calls", true);
  const generation = generationOf(text(request["model"]));
  const max_tokens = capOf(request) ?? defaultCap;
  const tools = toolsOf(request, generation);
  const { output_config: format, order } = formatOf(request["response_format"]);
  const thinking = thinkingFields(request, max_tokens, tools.isForced, generation, left);
  const { system, messages } = turnsOf(request["messages"], generation.lateSystem, left);
  const output_config = { ...object(thinking["output_config"]), ...format };
  const crossed = given({
    model: request["model"],
    max_tokens,
    system: [system, order].filter(Boolean).join("\n\n") || undefined,
    messages,
    stream: request["stream"],
    stop_sequences: stopSequences(request),
    ...tools.fields,
    ...samplingOf(request, generation.samples && !thinks(thinking), left),
    thinking: thinking["thinking"],
    output_config: Object.keys(output_config).length > 0 ? output_config : undefined,
  });
  return { request: crossed, ignored: left.names() };
}
