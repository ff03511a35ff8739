import { formedRequest, refuse } from "#formats";
import { isSet, type JsonObject, list, object, omitNullish, strings, text } from "#json";
import { withSystem } from "../chat/parts.ts";
import { type ConvertedRequest, ignoredParams } from "../converter.ts";
import { geminiSchemaToChat, lowerTypes, strictSchema } from "../json-schema.ts";
import { convertMessagesToChat } from "./convert-messages-to-chat.ts";
import { convertToolsToChat } from "./prepare-tools.ts";
import { effortOf } from "./reasoning.ts";

const configPath = (field: string) => `generationConfig.${field}`;

export const callerFields: Readonly<Record<string, string>> = {
  messages: "contents",
  max_tokens: configPath("maxOutputTokens"),
  max_completion_tokens: configPath("maxOutputTokens"),
  n: configPath("candidateCount"),
  stop: configPath("stopSequences"),
  temperature: configPath("temperature"),
  top_p: configPath("topP"),
  seed: configPath("seed"),
  presence_penalty: configPath("presencePenalty"),
  frequency_penalty: configPath("frequencyPenalty"),
  logprobs: configPath("responseLogprobs"),
  top_logprobs: configPath("logprobs"),
  tools: "tools",
  tool_choice: "toolConfig.functionCallingConfig",
  response_format: configPath("responseSchema"),
  reasoning_effort: configPath("thinkingConfig"),
  service_tier: "serviceTier",
};

function jsonSchemaFormat(schema: JsonObject, field: string): JsonObject {
  const strict = strictSchema(schema, configPath(field));
  return {
    type: "json_schema",
    json_schema: { name: "answer", schema: strict ?? schema, ...(strict && { strict: true }) },
  };
}

function responseFormatToChat(config: JsonObject): JsonObject | undefined {
  const { responseMimeType, responseSchema, responseJsonSchema, responseFormat } = config;
  const { mimeType, schema } = object(list(responseFormat)[0]?.["text"]);
  const mime = text(responseMimeType) || text(mimeType);
  // `text/x.enum` would change what the answer looks like.
  if (mime && mime !== "text/plain" && mime !== "application/json")
    refuse(configPath("responseMimeType"), "this model answers with text or JSON only");
  if (isSet(responseJsonSchema))
    return jsonSchemaFormat(lowerTypes(responseJsonSchema, configPath("responseJsonSchema")), "responseJsonSchema");
  if (isSet(responseSchema))
    return jsonSchemaFormat(geminiSchemaToChat(responseSchema, configPath("responseSchema")), "responseSchema");
  if (isSet(schema)) return jsonSchemaFormat(lowerTypes(schema, configPath("responseFormat")), "responseFormat");
  return mime === "application/json" ? { type: "json_object" } : undefined;
}

function refuseAudioOutput({ responseModalities, responseFormat }: JsonObject): void {
  if (!strings(responseModalities).every((name) => /^(MODALITY_UNSPECIFIED|TEXT)$/i.test(name)))
    refuse(configPath("responseModalities"), "this model answers with text only");
  if (list(responseFormat).some(({ audio }) => isSet(audio)))
    refuse(configPath("responseFormat"), "this model answers with text only");
}

/** Paid tiers have the same names in chat; the standard tier is chat's default. */
function serviceTierToChat(tier: string): string | undefined {
  const name = tier.toLowerCase().replace(/^service_tier_/, "");
  return name === "" || name === "standard" || name === "unspecified" ? undefined : name;
}

/** `model` and `stream` of the chat request are set by the caller of the conversion. Fields that are not read are ignored. */
export function convertRequestToChat(raw: JsonObject): ConvertedRequest {
  const request = object(formedRequest(raw));
  const { contents, systemInstruction, generationConfig, serviceTier, ...others } = request;
  const { model: _, tools: __, toolConfig: ___, store, ...ignoredFields } = others;
  const { maxOutputTokens, candidateCount, stopSequences, temperature, topP, seed, ...otherConfig } =
    object(generationConfig);
  const { presencePenalty, frequencyPenalty, responseLogprobs, logprobs, thinkingConfig, ...outputConfig } =
    otherConfig;
  const { responseMimeType, responseSchema, responseJsonSchema, responseFormat, responseModalities, ...ignoredConfig } =
    outputConfig;
  const format = { responseMimeType, responseSchema, responseJsonSchema, responseFormat, responseModalities };

  const ignored = ignoredParams();
  for (const [field, value] of Object.entries(ignoredFields)) ignored.add(field, value);
  if (store !== false) ignored.add("store", store);
  for (const [field, value] of Object.entries(ignoredConfig)) ignored.add(configPath(field), value);
  refuseAudioOutput(format);
  const system = list(object(systemInstruction)["parts"])
    .map((part) => text(part["text"]))
    .filter(Boolean)
    .join("\n\n");
  const messages = convertMessagesToChat(contents, ignored);
  if (messages.length === 0) refuse("contents", "at least one part must have content");
  const hasLogprobs = responseLogprobs === true;
  const chat = omitNullish({
    messages: withSystem(system, messages),
    max_tokens: maxOutputTokens,
    n: candidateCount === 1 ? undefined : candidateCount,
    stop: isSet(stopSequences) ? stopSequences : undefined,
    temperature,
    top_p: topP,
    seed,
    presence_penalty: presencePenalty,
    frequency_penalty: frequencyPenalty,
    logprobs: hasLogprobs || undefined,
    top_logprobs: hasLogprobs ? logprobs : undefined,
    ...convertToolsToChat(request, ignored),
    response_format: responseFormatToChat(format),
    reasoning_effort: effortOf(thinkingConfig),
    service_tier: serviceTierToChat(text(serviceTier)),
  });
  return { request: chat, ignored: ignored.names() };
}
