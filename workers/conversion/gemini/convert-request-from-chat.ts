import { invalidValue } from "#errors";
import { formedThinking } from "#formats";
import { isSet, type JsonObject, number, object, omitNullish, text } from "#json";
import {
  capOf,
  checkFields,
  commonFields,
  isEmpty,
  isStandardTier,
  type RefusedField,
  refusedEverywhere,
  refuseParam,
  stopSequencesOf,
} from "../chat/fields.ts";
import type { ConvertedRequest, IgnoredParams } from "../converter.ts";
import { schemaToGemini } from "../json-schema.ts";
import { convertMessagesFromChat } from "./convert-messages-from-chat.ts";
import { prepareTools } from "./prepare-tools.ts";
import { type ModelCapabilities, modelCapabilities, thinkingConfigOf } from "./reasoning.ts";

/** Fields that are converted or checked here; all others are ignored by name. */
const convertible: ReadonlySet<string> = new Set([
  ...commonFields,
  "top_k",
  "stop",
  "seed",
  "presence_penalty",
  "frequency_penalty",
  "extra_body",
  "service_tier",
]);

const refused: readonly RefusedField[] = [
  ...refusedEverywhere,
  ["service_tier", (value) => isStandardTier(value) || value === "flex" || value === "priority"],
];

const maxStopSequences = 5;

function responseFormatFromChat(responseFormat: unknown): JsonObject {
  const { type, json_schema } = object(responseFormat);
  if (type === undefined || type === "text") return {};
  const json = { responseMimeType: "application/json" };
  if (type === "json_object") return json;
  if (type !== "json_schema") return refuseParam("response_format.type");
  const path = "response_format.json_schema.schema";
  return { ...json, responseJsonSchema: schemaToGemini(object(json_schema)["schema"], path) };
}

function stopSequencesFromChat(request: JsonObject): readonly unknown[] | undefined {
  const sequences = stopSequencesOf(request);
  if (sequences.length > maxStopSequences)
    throw invalidValue("stop", `stop: this model accepts at most ${maxStopSequences} sequences.`);
  return sequences.length > 0 ? sequences : undefined;
}

/** `extra_body.google`, of the provider's OpenAI-compatible interface, takes precedence over `reasoning_effort`. */
function thinkingConfigFromChat(
  request: JsonObject,
  cap: number | undefined,
  capabilities: ModelCapabilities,
  ignored: IgnoredParams,
): unknown {
  const { google, ...otherExtra } = object(request["extra_body"]);
  const { thinking_config, thinkingConfig = thinking_config, ...otherGoogle } = object(google);
  for (const [field, value] of [...Object.entries(otherExtra), ...Object.entries(otherGoogle)])
    ignored.add(field, value);
  if (isSet(thinkingConfig)) return formedThinking(thinkingConfig);
  const effort = text(request["reasoning_effort"]);
  if (!effort) return undefined;
  const config = thinkingConfigOf(effort, cap, capabilities);
  if (!config) ignored.add("reasoning_effort", effort);
  return config;
}

export function convertRequestFromChat(request: JsonObject): ConvertedRequest {
  const ignored = checkFields(request, refused, convertible);
  const { service_tier, logprobs, top_logprobs, n } = request;
  const serviceTier = isStandardTier(service_tier) ? undefined : service_tier;
  if (!serviceTier) ignored.add("service_tier", service_tier);
  if (request["parallel_tool_calls"] === true) ignored.add("parallel_tool_calls", true);
  const capabilities = modelCapabilities(text(request["model"]));
  const penalty = (field: string): number | undefined => {
    const value = number(request[field]) || undefined;
    return value === undefined || capabilities.penalties ? value : refuseParam(field);
  };
  const maxOutputTokens = capOf(request);
  const { system, contents } = convertMessagesFromChat(request["messages"], capabilities, ignored);
  const generationConfig = omitNullish({
    maxOutputTokens,
    candidateCount: n === 1 ? undefined : n,
    temperature: request["temperature"],
    topP: request["top_p"],
    topK: request["top_k"],
    stopSequences: stopSequencesFromChat(request),
    seed: request["seed"],
    presencePenalty: penalty("presence_penalty"),
    frequencyPenalty: penalty("frequency_penalty"),
    responseLogprobs: logprobs === true || undefined,
    logprobs: logprobs === true ? top_logprobs : undefined,
    ...responseFormatFromChat(request["response_format"]),
    thinkingConfig: thinkingConfigFromChat(request, maxOutputTokens, capabilities, ignored),
  });
  const converted = omitNullish({
    systemInstruction: system.length > 0 ? { parts: system } : undefined,
    contents,
    ...prepareTools(request),
    generationConfig: isEmpty(generationConfig) ? undefined : generationConfig,
    serviceTier,
    store: false,
  });
  return { request: converted, ignored: ignored.names() };
}
