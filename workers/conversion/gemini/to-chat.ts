import { invalidValue } from "#errors";
import { formedRequest, given, isSet, type JsonObject, list, object, strings, text } from "#formats";
import type { ConvertedRequest } from "../converter.ts";
import { type IgnoredParams, ignoredParams } from "../ignored-params.ts";
import { effortOf } from "./effort.ts";
import { jsonSchema, strictSchema } from "./schema.ts";
import { messagesOf, systemText } from "./to-chat-contents.ts";

/** Fields that cross. What else has a value is left out by name. */
const convertible: ReadonlySet<string> = new Set([
  "model",
  "contents",
  "systemInstruction",
  "tools",
  "toolConfig",
  "generationConfig",
  "serviceTier",
]);
const convertibleConfig: ReadonlySet<string> = new Set([
  "maxOutputTokens",
  "candidateCount",
  "stopSequences",
  "temperature",
  "topP",
  "seed",
  "presencePenalty",
  "frequencyPenalty",
  "responseLogprobs",
  "logprobs",
  "responseMimeType",
  "responseSchema",
  "responseJsonSchema",
  "responseFormat",
  "responseModalities",
  "thinkingConfig",
]);
const convertibleTools: ReadonlySet<string> = new Set(["name", "description", "parameters", "parametersJsonSchema"]);

function toolToChat(tool: JsonObject, at: string, strict: boolean, left: IgnoredParams): JsonObject {
  for (const [field, value] of Object.entries(tool)) if (!convertibleTools.has(field)) left.add(field, value);
  const { name, description, parameters, parametersJsonSchema } = tool;
  const schema = isSet(parameters) ? jsonSchema(parameters, `${at}.parameters`) : parametersJsonSchema;
  return {
    type: "function",
    function: given({ name: text(name), description, parameters: schema, strict: strict || undefined }),
  };
}

/** Only some of the functions may be called: the others are left out, for few servers know another way to say so. */
function toolsToChat(request: JsonObject, left: IgnoredParams): JsonObject {
  const { mode, allowedFunctionNames } = object(object(request["toolConfig"])["functionCallingConfig"]);
  const how = text(mode).toUpperCase();
  const tools = list(request["tools"]).flatMap((tool, t) =>
    list(tool["functionDeclarations"]).map((each, f) =>
      toolToChat(each, `tools[${t}].functionDeclarations[${f}]`, how === "VALIDATED", left),
    ),
  );
  const allowed = new Set(how === "ANY" || how === "VALIDATED" ? strings(allowedFunctionNames) : []);
  const [only] = allowed;
  if (how === "ANY" && tools.length === 0) {
    const at = "toolConfig.functionCallingConfig.mode";
    throw invalidValue(at, `${at}: there is no function to call.`);
  }
  if (tools.length === 0) return {};
  const isOne = how === "ANY" && allowed.size === 1;
  const kept = isOne || allowed.size === 0 ? tools : tools.filter((tool) => allowed.has(nameOf(tool)));
  const choices = new Map<string, unknown>([
    ["ANY", isOne ? { type: "function", function: { name: only } } : "required"],
    ["NONE", "none"],
    ["AUTO", "auto"],
    ["VALIDATED", "auto"],
  ]);
  return given({ tools: kept, tool_choice: choices.get(how) });
}

const nameOf = (tool: JsonObject): string => text(object(tool["function"])["name"]);

function schemaFormat(schema: JsonObject, at: string): JsonObject {
  const strict = strictSchema(schema, at);
  return {
    type: "json_schema",
    json_schema: { name: "answer", schema: strict ?? schema, ...(strict && { strict: true }) },
  };
}

function formatToChat(config: JsonObject): JsonObject | undefined {
  const at = (field: string) => `generationConfig.${field}`;
  const { mimeType, schema } = object(list(config["responseFormat"])[0]?.["text"]);
  const { responseSchema, responseJsonSchema } = config;
  const mime = text(config["responseMimeType"]) || text(mimeType);
  // Enums and the like; a JSON answer would be another one.
  if (mime && mime !== "text/plain" && mime !== "application/json")
    throw invalidValue(at("responseMimeType"), `${at("responseMimeType")}: this model answers with text or JSON only.`);
  if (isSet(responseJsonSchema)) return schemaFormat(object(responseJsonSchema), at("responseJsonSchema"));
  if (isSet(responseSchema))
    return schemaFormat(jsonSchema(responseSchema, at("responseSchema")), at("responseSchema"));
  if (isSet(schema)) return schemaFormat(object(schema), at("responseFormat"));
  return mime === "application/json" ? { type: "json_object" } : undefined;
}

function refuseSpeech(config: JsonObject): void {
  const isText = (name: string) => /^(MODALITY_UNSPECIFIED|TEXT)$/i.test(name);
  const at = "generationConfig.responseModalities";
  if (!strings(config["responseModalities"]).every(isText))
    throw invalidValue(at, `${at}: this model answers with text only.`);
  if (list(config["responseFormat"]).some(({ audio }) => isSet(audio)))
    throw invalidValue(
      "generationConfig.responseFormat",
      "generationConfig.responseFormat: this model answers with text only.",
    );
}

/** A tier that is paid for has the same name in both; the standard one is what there is without a word. */
function tierToChat(tier: string): string | undefined {
  const name = tier.toLowerCase().replace(/^service_tier_/, "");
  return name === "" || name === "standard" || name === "unspecified" ? undefined : name;
}

/** A generateContent request as a chat request; `model` and `stream` are not in its body. */
export function toChat(raw: JsonObject): ConvertedRequest {
  const request = object(formedRequest(raw));
  const config = object(request["generationConfig"]);
  const left = ignoredParams();
  for (const [field, value] of Object.entries(request))
    if (!convertible.has(field) && !(field === "store" && value === false)) left.add(field, value);
  for (const [field, value] of Object.entries(config))
    if (!convertibleConfig.has(field)) left.add(`generationConfig.${field}`, value);
  refuseSpeech(config);
  const system = systemText(request["systemInstruction"]);
  const messages = messagesOf(request["contents"], left);
  if (messages.length === 0) throw invalidValue("contents", "contents: one must have something in it.");
  const asksLogprobs = config["responseLogprobs"] === true;
  const { candidateCount, stopSequences } = config;
  const chat = given({
    messages: system ? [{ role: "system", content: system }, ...messages] : messages,
    max_tokens: config["maxOutputTokens"],
    n: candidateCount === 1 ? undefined : candidateCount,
    stop: isSet(stopSequences) ? stopSequences : undefined,
    temperature: config["temperature"],
    top_p: config["topP"],
    seed: config["seed"],
    presence_penalty: config["presencePenalty"],
    frequency_penalty: config["frequencyPenalty"],
    logprobs: asksLogprobs || undefined,
    top_logprobs: asksLogprobs ? config["logprobs"] : undefined,
    ...toolsToChat(request, left),
    response_format: formatToChat(config),
    reasoning_effort: effortOf(config["thinkingConfig"]),
    service_tier: tierToChat(text(request["serviceTier"])),
  });
  return { request: chat, ignored: left.names() };
}
