import { invalidValue } from "#errors";
import { commonError, providerTool, storedAtProvider, validate } from "../errors.ts";
import { object, refuseDeep } from "../json.ts";
import { measuredSize, newMeasure } from "../measure.ts";
import type { Codec, Feature } from "../types.ts";
import { isUploadId } from "../uploads.ts";
import { measureRequest } from "./measure.ts";
import { type ChatRequest, chatRequest, searchFields } from "./request.ts";

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
  for (const field of searchFields) if (request[field]) features.set("web_search", field);
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
    const features = featuresOf(request);
    const measure = newMeasure(features);
    measureRequest(request, measure);
    const { mediaBytes, textBytes, uploads } = measure;
    const caps = [request.max_tokens, request.max_completion_tokens].filter((cap) => cap != null);
    const inputBytes = Math.max(0, bodyBytes - mediaBytes);
    return {
      model: request.model,
      stream: request.stream ?? false,
      // The prompt repeats tools much as they are in the body.
      textBytes: features.has("tools") ? inputBytes : textBytes,
      size: {
        inputBytes,
        messages: request.messages.length,
        ...measuredSize(measure),
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
