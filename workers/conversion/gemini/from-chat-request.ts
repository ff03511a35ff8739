import { invalidValue } from "#errors";
import { formedThinking, given, isSet, type JsonObject, list, number, object, searchFields, text } from "#formats";
import { capOf, commonFields, isEmpty, isStandardTier, isTextOnly, stopSequencesOf } from "../chat/fields.ts";
import type { ConvertedRequest } from "../converter.ts";
import { type IgnoredParams, ignoredParams } from "../ignored-params.ts";
import { thinkingOf } from "./effort.ts";
import { contentsOf } from "./from-chat-contents.ts";
import { type Generation, generationOf } from "./model-capabilities.ts";
import { providersSchema } from "./schema.ts";

/** Fields that cross, or whose only value that gets here means nothing to the format. */
const convertible: ReadonlySet<string> = new Set([
  ...commonFields,
  "top_k",
  "stop",
  "seed",
  "presence_penalty",
  "frequency_penalty",
  "extra_body",
]);

/** What changes the meaning and cannot cross, by the values that mean nothing. */
const refused: readonly (readonly [field: string, isHarmless: (value: unknown) => boolean])[] = [
  ["modalities", isTextOnly],
  ["prediction", isEmpty],
  ["logit_bias", isEmpty],
  ["functions", isEmpty],
  ...searchFields.map((field) => [field, isEmpty] as const),
  ["service_tier", (value) => isStandardTier(value) || value === "flex" || value === "priority"],
];

const refuse = (field: string): never => {
  throw invalidValue(field, `${field}: this model does not take it.`);
};

function declarationOf(value: JsonObject, t: number): JsonObject {
  const at = `tools[${t}]`;
  if (value["type"] !== "function") refuse(`${at}.type`);
  const { name, description, parameters } = object(value["function"]);
  if (typeof name !== "string" || !name)
    throw invalidValue(`${at}.function.name`, `${at}.function.name must be a string.`);
  const schema = isEmpty(parameters) ? undefined : providersSchema(parameters, `${at}.function.parameters`);
  return given({ name, description, parametersJsonSchema: schema });
}

interface Choice {
  readonly mode: "AUTO" | "NONE" | "ANY";
  readonly name?: string;
  readonly only?: ReadonlySet<unknown>;
}

function choiceOf(choice: unknown): Choice {
  const { type, function: named, allowed_tools } = object(choice);
  if (choice == null || choice === "auto") return { mode: "AUTO" };
  if (choice === "none") return { mode: "NONE" };
  if (choice === "required") return { mode: "ANY" };
  const { name } = object(named);
  if (type === "function" && typeof name === "string") return { mode: "ANY", name };
  if (type !== "allowed_tools") return refuse("tool_choice");
  const { mode, tools } = object(allowed_tools);
  const names = list(tools).map((tool) => object(tool["function"])["name"]);
  return { mode: mode === "required" ? "ANY" : "AUTO", only: new Set(names) };
}

function toolsOf(request: JsonObject): JsonObject {
  const tools = list(request["tools"]);
  const declared = tools.map(declarationOf);
  const { mode, name, only } = choiceOf(request["tool_choice"]);
  if (declared.length === 0) return mode === "ANY" ? refuse("tool_choice") : {};
  // The provider's models may always call several at once.
  if (request["parallel_tool_calls"] === false && mode !== "NONE") refuse("parallel_tool_calls");
  const isStrict = mode === "AUTO" && tools.some((tool) => object(tool["function"])["strict"] === true);
  const functionDeclarations = only ? declared.filter((each) => only.has(each["name"])) : declared;
  const functionCallingConfig = given({
    mode: isStrict ? "VALIDATED" : mode,
    allowedFunctionNames: name === undefined ? undefined : [name],
  });
  return {
    tools: [{ functionDeclarations }],
    ...((mode !== "AUTO" || isStrict) && { toolConfig: { functionCallingConfig } }),
  };
}

function formatOf(responseFormat: unknown): JsonObject {
  const { type, json_schema } = object(responseFormat);
  if (type === undefined || type === "text") return {};
  const json = { responseMimeType: "application/json" };
  if (type === "json_object") return json;
  if (type !== "json_schema") return refuse("response_format.type");
  const at = "response_format.json_schema.schema";
  return { ...json, responseJsonSchema: providersSchema(object(json_schema)["schema"], at) };
}

/** The provider takes five. */
function stopSequences(request: JsonObject): readonly unknown[] | undefined {
  const sequences = stopSequencesOf(request);
  if (sequences.length > 5) throw invalidValue("stop", "stop: this model takes 5 sequences at most.");
  return sequences.length > 0 ? sequences : undefined;
}

function penalty(request: JsonObject, field: string, { penalties }: Generation): number | undefined {
  const value = number(request[field]) || undefined;
  return value === undefined || penalties ? value : refuse(field);
}

/** The provider's own chat interface takes its settings in `extra_body.google`; they go before `reasoning_effort`. */
function thinkingFields(
  request: JsonObject,
  cap: number | undefined,
  generation: Generation,
  left: IgnoredParams,
): unknown {
  const extra = object(request["extra_body"]);
  const { thinking_config, thinkingConfig = thinking_config, ...google } = object(extra["google"]);
  for (const field of Object.keys(extra)) if (field !== "google") left.add(field, extra[field]);
  for (const field of Object.keys(google)) left.add(field, google[field]);
  if (isSet(thinkingConfig)) return formedThinking(thinkingConfig);
  const effort = text(request["reasoning_effort"]);
  if (!effort) return undefined;
  const fields = thinkingOf(effort, cap, generation);
  if (!fields) left.add("reasoning_effort", effort);
  return fields;
}

/** A chat request as a generateContent request. Its `model` goes into the path. */
export function fromChatRequest(request: JsonObject): ConvertedRequest {
  for (const [field, isHarmless] of refused) if (!isHarmless(request[field])) refuse(field);
  const { service_tier, logprobs, top_logprobs, n } = request;
  const hasTier = !isStandardTier(service_tier);
  const left = ignoredParams();
  for (const [field, value] of Object.entries(request))
    if (!convertible.has(field) && !(field === "service_tier" && hasTier)) left.add(field, value);
  if (request["parallel_tool_calls"] === true) left.add("parallel_tool_calls", true);
  const generation = generationOf(text(request["model"]));
  const maxOutputTokens = capOf(request);
  const { system, contents } = contentsOf(request["messages"], { generation, left });
  const generationConfig = given({
    maxOutputTokens,
    candidateCount: n === 1 ? undefined : n,
    temperature: request["temperature"],
    topP: request["top_p"],
    topK: request["top_k"],
    stopSequences: stopSequences(request),
    seed: request["seed"],
    presencePenalty: penalty(request, "presence_penalty", generation),
    frequencyPenalty: penalty(request, "frequency_penalty", generation),
    responseLogprobs: logprobs === true || undefined,
    logprobs: logprobs === true ? top_logprobs : undefined,
    ...formatOf(request["response_format"]),
    thinkingConfig: thinkingFields(request, maxOutputTokens, generation, left),
  });
  const crossed = given({
    systemInstruction: system.length > 0 ? { parts: system } : undefined,
    contents,
    ...toolsOf(request),
    generationConfig: isEmpty(generationConfig) ? undefined : generationConfig,
    serviceTier: hasTier ? service_tier : undefined,
    store: false,
  });
  return { request: crossed, ignored: left.names() };
}
