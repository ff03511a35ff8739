import { z } from "zod";
import { invalidValue } from "#errors";
import { outputBytes } from "./chat-answer.ts";
import { searchFields } from "./chat-fields.ts";
import { refuseDeep } from "./depth.ts";
import { commonError } from "./error-body.ts";
import { valid } from "./invalid.ts";
import { byteLength, object } from "./loose.ts";
import type { Codec, Feature, UploadRef } from "./types.ts";
import { addUpload, isUploadId, partUpload } from "./uploads.ts";

const tokenCap = z.int().positive().max(1e9).nullish();
const contentPart = z.looseObject({ type: z.string() });

const message = z
  .looseObject({
    role: z.enum(["system", "developer", "user", "assistant", "tool"]),
    content: z.union([z.string(), z.array(contentPart)]).nullish(),
  })
  .meta({ id: "Message" });

/** Specification, part 2, "ChatRequest"; fields that it does not name pass through. */
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
      .describe("Works where the model supports tools"),
    tool_choice: z.union([z.string(), z.looseObject({})]).nullish(),
    parallel_tool_calls: z.boolean().nullish(),
    response_format: z.looseObject({ type: z.string() }).nullish().describe("JSON mode, where the model supports it"),
    stream_options: z.looseObject({}).nullish(),
    logprobs: z.boolean().nullish(),
    top_logprobs: z.int().min(0).max(20).nullish(),
  })
  .meta({ id: "ChatRequest" });

type ChatRequest = z.infer<typeof chatRequest>;

/** Parts that cost what their bytes cost. */
const textParts: readonly string[] = ["text", "refusal", "thinking"];

/** Counts the media parts of a request and the bytes that they take, and refuses what has no bound. */
function measureParts(messages: ChatRequest["messages"], features: Map<Feature, string>) {
  const parts = { image: 0, audio: 0, file: 0 };
  const uploads: UploadRef[] = [];
  let mediaBytes = 0;
  let textBytes = 0;
  messages.forEach((message, m) => {
    const { content } = message;
    textBytes += outputBytes(message);
    if (!Array.isArray(content)) return;
    content.forEach((part, c) => {
      const at = `messages[${m}].content[${c}]`;
      const upload = partUpload(part, at);
      if (upload) addUpload(uploads, upload);
      switch (part.type) {
        case "image_url":
          parts.image++;
          features.set("image", at);
          if (!upload) mediaBytes += addressBytes(part["image_url"], `${at}.image_url`);
          break;
        case "input_audio":
          parts.audio++;
          features.set("audio", at);
          if (!upload) mediaBytes += dataBytes(part["input_audio"], "data", `${at}.input_audio`);
          break;
        case "file":
          parts.file++;
          features.set("file", at);
          if (!upload) mediaBytes += dataBytes(part["file"], "file_data", `${at}.file`);
          break;
        default:
          if (!textParts.includes(part.type))
            throw invalidValue(`${at}.type`, `${at}.type: parts of this type are not supported.`);
          textBytes += byteLength(part["text"]);
      }
    });
  });
  return { parts, mediaBytes, textBytes, uploads };
}

function dataBytes(holder: unknown, field: string, at: string): number {
  const data = object(holder)[field];
  if (typeof data !== "string") throw invalidValue(`${at}.${field}`, `${at}.${field} must be a string.`);
  return data.length;
}

/** Makers take `{url}`, and some clients send the bare address. Only data addresses carry the media's own bytes. */
function addressBytes(holder: unknown, at: string): number {
  const url = typeof holder === "string" ? holder : object(holder)["url"];
  if (typeof url !== "string" || !/^(https?:\/\/|data:)/i.test(url))
    throw invalidValue(`${at}.url`, `${at}.url must be an http, https or data address, or the id of an upload.`);
  return /^data:/i.test(url) ? url.length : 0;
}

function featuresOf(request: ChatRequest): Map<Feature, string> {
  const features = new Map<Feature, string>();
  request.tools?.forEach(({ type }, t) => {
    features.set("tools", "tools");
    if (type !== "function" && type !== "custom")
      throw invalidValue(`tools[${t}].type`, `tools[${t}].type: tools that the maker runs are not supported.`);
  });
  if (Array.isArray(request["functions"]) && request["functions"].length) features.set("tools", "functions");
  if (request.response_format && request.response_format.type !== "text") features.set("json", "response_format");
  if (request.logprobs) features.set("logprobs", "logprobs");
  const { modalities, service_tier } = request;
  if (Array.isArray(modalities) && modalities.includes("audio")) features.set("audio_output", "modalities");
  if (Array.isArray(modalities) && modalities.some((each) => each !== "text" && each !== "audio"))
    throw invalidValue("modalities", "modalities: only text and audio are supported.");
  for (const field of searchFields) if (request[field]) features.set("web_search", field);
  if (service_tier != null && service_tier !== "auto" && service_tier !== "default")
    features.set("service_tier", "service_tier");
  return features;
}

/** Tenants share the operator's maker key: what is kept at the maker under an id may be another tenant's. */
function refuseStored({ messages, extra_body }: ChatRequest): void {
  const refuse = (param: string) => {
    throw invalidValue(param, `${param}: what is kept at the maker cannot be used here; send it itself.`);
  };
  messages.forEach(({ audio, content }, m) => {
    if (audio != null) refuse(`messages[${m}].audio`);
    if (!Array.isArray(content)) return;
    content.forEach((part, c) => {
      const { file_id } = object(part["file"]);
      if (file_id != null && !isUploadId(file_id)) refuse(`messages[${m}].content[${c}].file.file_id`);
    });
  });
  const cached = object(object(extra_body)["google"])["cached_content"];
  if (cached != null) refuse("extra_body.google.cached_content");
}

export const chatCodec: Codec = {
  parse(body, bodyBytes) {
    refuseDeep(body);
    const request = valid(chatRequest, body);
    refuseStored(request);
    const features = featuresOf(request);
    const { parts, mediaBytes, textBytes, uploads } = measureParts(request.messages, features);
    const caps = [request.max_tokens, request.max_completion_tokens].filter((cap) => cap != null);
    const inputBytes = Math.max(0, bodyBytes - mediaBytes);
    return {
      model: request.model,
      stream: request.stream ?? false,
      // Tools are written out in the prompt much as they stand here.
      textBytes: features.has("tools") ? inputBytes : textBytes,
      size: {
        inputBytes,
        messages: request.messages.length,
        parts,
        choices: request.n ?? 1,
        ...(caps.length > 0 && { outputCap: Math.min(...caps) }),
      },
      features,
      uploads,
    };
  },
  error: (error, requestId) => JSON.stringify(commonError(error, requestId)),
  streamError: (error, requestId) => `data: ${JSON.stringify(commonError(error, requestId))}\n\n`,
  ping: ": ping\n\n",
};
