import { z } from "zod";
import { invalidValue } from "#errors";
import { byteLength, type JsonObject, list, object, refuseDeep } from "#json";
import { conversationOf, openingIn } from "../conversation.ts";
import { commonError, providerTool, storedAtProvider, validate } from "../errors.ts";
import {
  anthropicLifetimes,
  type Measure,
  measureArguments,
  measuredCall,
  measureMedia,
  newMeasure,
  noteCacheWrite,
  openaiLifetimes,
  outputBytes,
} from "../measure.ts";
import { inputAudio, type MediaSource } from "../media-source.ts";
import { modelOrModels, routingFields } from "../routing-fields.ts";
import type { Codec, Feature } from "../types.ts";
import { isUploadId } from "../uploads.ts";

const tokenCap = z.int().positive().max(1e9).nullish();
const contentPart = z.looseObject({ type: z.string() });

const message = z
  .looseObject({
    role: z.enum(["system", "developer", "user", "assistant", "tool"]),
    content: z.union([z.string(), z.array(contentPart)]).nullish(),
  })
  .meta({ id: "Message" });

/** The request of docs/api/inference.md, "ChatRequest". Unknown fields pass through. */
export const chatRequest = z
  .looseObject({
    model: z.string().min(1).describe("provider/model"),
    messages: z.array(message).min(1),
    stream: z.boolean().nullish().describe("true returns server-sent events"),
    max_tokens: tokenCap,
    max_completion_tokens: tokenCap,
    temperature: z.number().min(0).max(2).nullish(),
    top_p: z.number().min(0).max(1).nullish(),
    n: z.int().min(1).max(128).nullish(),
    stop: z.union([z.string(), z.array(z.string()).max(16)]).nullish(),
    seed: z.int().nullish(),
    tools: z
      .array(z.looseObject({ type: z.string() }))
      .nullish()
      .describe("For models that support tools"),
    tool_choice: z.union([z.string(), z.looseObject({})]).nullish(),
    parallel_tool_calls: z.boolean().nullish(),
    response_format: z.looseObject({ type: z.string() }).nullish().describe("JSON mode, for models that support it"),
    stream_options: z.looseObject({}).nullish(),
    ...routingFields,
    logprobs: z.boolean().nullish(),
    top_logprobs: z.int().min(0).max(20).nullish(),
  })
  .meta({ id: "ChatRequest", override: modelOrModels });

type ChatRequest = z.infer<typeof chatRequest>;

/** Chat fields with which providers accept a web search. */
export const searchFields: readonly string[] = ["web_search_options", "search_parameters", "enable_search", "plugins"];

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

export function noteSearch(request: JsonObject, features: Map<Feature, string>): void {
  for (const field of searchFields)
    if (request[field] && !isEmptyList(request[field])) features.set("web_search", field);
}

/** Some clients send the address of an image itself instead of `{url}`. */
const imageOf = ({ image_url }: JsonObject): JsonObject =>
  typeof image_url === "string" ? { url: image_url } : object(image_url);

export function chatMedia(part: JsonObject, at: string): MediaSource | undefined {
  switch (part["type"]) {
    case "image_url":
      return { kind: "image", holder: imageOf(part), path: `${at}.image_url`, fields: { url: "address" } };
    case "input_audio":
      return inputAudio(part, at);
    case "file": {
      const fields = { file_id: "nothing", file_data: "file" } as const;
      return { kind: "file", holder: object(part["file"]), path: `${at}.file`, fields };
    }
    default:
      return undefined;
  }
}

const textParts: readonly string[] = ["text", "refusal", "thinking"];

/** Notes cache breakpoints in the form of Anthropic or OpenAI. Conversion drops those that a model does not support. */
function noteBreakpoints(holder: JsonObject, at: string, measure: Measure): void {
  const path = at && `${at}.`;
  noteCacheWrite(holder["cache_control"], `${path}cache_control`, anthropicLifetimes, measure);
  noteCacheWrite(holder["prompt_cache_breakpoint"], `${path}prompt_cache_breakpoint`, openaiLifetimes, measure);
}

function measureRequest(request: ChatRequest, measure: Measure): void {
  noteBreakpoints(request, "", measure);
  noteCacheWrite(request["prompt_cache_options"], "prompt_cache_options", openaiLifetimes, measure);
  request.tools?.forEach((tool, t) => {
    noteBreakpoints(tool, `tools[${t}]`, measure);
    noteBreakpoints(object(tool["function"]), `tools[${t}].function`, measure);
  });
  request.messages.forEach((message, m) => {
    const { content } = message;
    measure.textBytes += outputBytes(message);
    list(message["tool_calls"]).forEach(({ function: called }, t) => {
      measureArguments(object(called)["arguments"], `messages[${m}].tool_calls[${t}].function.arguments`, measure);
    });
    noteBreakpoints(message, `messages[${m}]`, measure);
    if (!Array.isArray(content)) return;
    content.forEach((part, c) => {
      const at = `messages[${m}].content[${c}]`;
      noteBreakpoints(part, at, measure);
      const media = chatMedia(part, at);
      if (media) {
        measureMedia(media, at, measure);
        return;
      }
      if (!textParts.includes(part.type))
        throw invalidValue(`${at}.type`, `${at}.type: parts of this type are not supported.`);
      measure.textBytes += byteLength(part["text"]);
    });
  });
}

function featuresOf(request: ChatRequest): Map<Feature, string> {
  const features = new Map<Feature, string>();
  request.tools?.forEach(({ type }, t) => {
    features.set("tools", "tools");
    if (type !== "function" && type !== "custom") throw providerTool(`tools[${t}].type`);
  });
  if (Array.isArray(request["functions"]) && request["functions"].length) features.set("tools", "functions");
  if (request.response_format && request.response_format.type !== "text") features.set("json", "response_format");
  if (request.logprobs) features.set("logprobs", "logprobs");
  const { modalities, service_tier } = request;
  if (Array.isArray(modalities) && modalities.includes("audio")) features.set("audio_output", "modalities");
  if (Array.isArray(modalities) && modalities.some((each) => each !== "text" && each !== "audio"))
    throw invalidValue("modalities", "modalities: only text and audio are supported.");
  noteSearch(request, features);
  if (service_tier != null && service_tier !== "auto" && service_tier !== "default")
    features.set("service_tier", "service_tier");
  return features;
}

function refuseStored({ messages, extra_body }: ChatRequest): void {
  messages.forEach(({ audio, content }, m) => {
    if (audio != null) throw storedAtProvider(`messages[${m}].audio`);
    if (!Array.isArray(content)) return;
    content.forEach((part, c) => {
      const { file_id } = object(part["file"]);
      if (file_id != null && !isUploadId(file_id)) throw storedAtProvider(`messages[${m}].content[${c}].file.file_id`);
    });
  });
  const cached = object(object(extra_body)["google"])["cached_content"];
  if (cached != null) throw storedAtProvider("extra_body.google.cached_content");
}

export const chatCodec: Codec = {
  parse(body, bodyBytes) {
    refuseDeep(body);
    const request = validate(chatRequest, body);
    refuseStored(request);
    const measure = newMeasure(featuresOf(request));
    measureRequest(request, measure);
    const { model, stream, messages, n, max_tokens, max_completion_tokens } = request;
    const caps = [max_tokens, max_completion_tokens].filter((cap) => cap != null);
    const outputCap = caps.length > 0 ? Math.min(...caps) : undefined;
    const size = { messages: messages.length, choices: n ?? 1 };
    const { prompt_cache_key, tools } = request;
    return {
      model,
      stream: stream ?? false,
      ...conversationOf(prompt_cache_key, () => openingIn(messages, { tools })),
      ...measuredCall(measure, bodyBytes, size, { outputCap }),
    };
  },
  error: (error, requestId) => JSON.stringify(commonError(error, requestId)),
  streamError: (error, requestId) => `data: ${JSON.stringify(commonError(error, requestId))}\n\n`,
  ping: ": ping\n\n",
};
