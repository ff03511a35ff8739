import { invalidValue } from "#errors";
import { type JsonObject, number, object, omitNullish, text } from "#json";
import { breakpoints } from "../cache-control.ts";
import {
  capOf,
  checkFields,
  commonFields,
  isEmpty,
  isStandardTier,
  type RefusedField,
  refusedEverywhere,
  stopSequencesOf,
} from "../chat/fields.ts";
import type { ConvertedRequest, IgnoredParams } from "../converter.ts";
import { closeObjects } from "../json-schema.ts";
import { convertMessagesFromChat } from "./convert-messages-from-chat.ts";
import { prepareTools } from "./prepare-tools.ts";
import { type ModelCapabilities, modelCapabilities, thinkingOf } from "./reasoning.ts";

/** The format requires a cap. */
const defaultCap = 4096;

/** All other fields are ignored parameters. */
const convertible: ReadonlySet<string> = new Set([...commonFields, "top_k", "stop", "thinking", "cache_control"]);

const refused: readonly RefusedField[] = [
  ["n", (value) => value == null || value === 1],
  ["logprobs", isEmpty],
  ["top_logprobs", isEmpty],
  ...refusedEverywhere,
  ["presence_penalty", isEmpty],
  ["frequency_penalty", isEmpty],
  ["service_tier", isStandardTier],
];

/** Models accept no sampling parameters while they think, and otherwise either temperature or top_p. */
function samplingFields(request: JsonObject, isAccepted: boolean, ignored: IgnoredParams): JsonObject {
  const { temperature, top_p, top_k } = request;
  if (!isAccepted) {
    ignored.add("top_k", top_k);
    if (temperature !== 1) ignored.add("temperature", temperature);
    if (top_p !== 1) ignored.add("top_p", top_p);
    return {};
  }
  const chatTemperature = number(temperature);
  const topP = number(top_p);
  // The provider's own chat interface also clamps the temperature.
  if (chatTemperature !== undefined && chatTemperature > 1) ignored.add("temperature", true);
  if (chatTemperature !== undefined && topP !== undefined && topP !== 1) ignored.add("top_p", true);
  return omitNullish({
    temperature: chatTemperature === undefined ? undefined : Math.min(1, chatTemperature),
    top_p: chatTemperature === undefined ? topP : undefined,
    top_k: number(top_k),
  });
}

function stopSequences(request: JsonObject): readonly unknown[] | undefined {
  const sequences = stopSequencesOf(request);
  if (sequences.some((each) => !text(each).trim()))
    throw invalidValue("stop", "stop: this model does not support sequences of white space alone.");
  return sequences.length > 0 ? sequences : undefined;
}

/** Messages has no field for a JSON object without a schema. */
const jsonInstruction = "Answer with one JSON object and nothing else: no explanation, no code fence.";

function outputFormat(responseFormat: unknown): { output_config?: JsonObject; instruction?: string } {
  const { type, json_schema } = object(responseFormat);
  if (type === undefined || type === "text") return {};
  if (type === "json_object") return { instruction: jsonInstruction };
  if (type !== "json_schema")
    throw invalidValue("response_format.type", "response_format.type: this model does not support this value.");
  const { schema } = object(json_schema);
  const format = { type: "json_schema", schema: closeObjects(schema, "response_format.json_schema.schema") };
  return { output_config: { format } };
}

const thinks = (fields: JsonObject): boolean =>
  ["enabled", "adaptive"].includes(text(object(fields["thinking"])["type"]));

function thinkingFields(
  { thinking, reasoning_effort }: JsonObject,
  cap: number,
  isForced: boolean,
  capabilities: ModelCapabilities,
  ignored: IgnoredParams,
): JsonObject {
  // The provider's own chat interface accepts its `thinking` unchanged.
  if (typeof object(thinking)["type"] === "string") return { thinking };
  const effort = text(reasoning_effort);
  if (!effort) return {};
  const fields = thinkingOf(effort, cap, capabilities);
  // Models that think cannot be forced to call a tool.
  const { thinking: _, ...rest } = fields ?? {};
  if (fields && !(isForced && thinks(fields))) return fields;
  if (Object.keys(rest).length === 0) ignored.add("reasoning_effort", true);
  return rest;
}

export function convertRequestFromChat(request: JsonObject): ConvertedRequest {
  const ignored = checkFields(request, refused, convertible);
  if (request["parallel_tool_calls"] === true) ignored.add("parallel_tool_calls", true);
  const capabilities = modelCapabilities(text(request["model"]));
  const max_tokens = capOf(request) ?? defaultCap;
  const marks = breakpoints();
  const tools = prepareTools(request, capabilities, marks);
  const { output_config: format, instruction } = outputFormat(request["response_format"]);
  const thinking = thinkingFields(request, max_tokens, tools.isForced, capabilities, ignored);
  const { system, messages } = convertMessagesFromChat(
    request["messages"],
    capabilities.lateSystem,
    ignored,
    marks,
    instruction,
  );
  const output_config = { ...object(thinking["output_config"]), ...format };
  const converted = omitNullish({
    model: request["model"],
    max_tokens,
    system: system.length > 0 ? system : undefined,
    messages,
    stream: request["stream"],
    ...marks.of(request, ""),
    stop_sequences: stopSequences(request),
    ...tools.fields,
    ...samplingFields(request, capabilities.sampling && !thinks(thinking), ignored),
    thinking: thinking["thinking"],
    output_config: Object.keys(output_config).length > 0 ? output_config : undefined,
  });
  return { request: converted, ignored: ignored.names() };
}
