import { searchFields } from "../chat/request.ts";
import { commonError, validate } from "../errors.ts";
import { refuseDeep } from "../json.ts";
import { measuredSize, newMeasure } from "../measure.ts";
import type { Codec, Feature } from "../types.ts";
import { errorEvent } from "./events.ts";
import { measureRequest } from "./measure.ts";
import { checkTools, refuseStored, refuseUnbounded } from "./refuse.ts";
import { logprobsInclude, type ResponsesRequest, responsesRequest } from "./request.ts";

function featuresOf(request: ResponsesRequest): Map<Feature, string> {
  const features = new Map<Feature, string>();
  if (request.tools?.length) features.set("tools", "tools");
  if (request.text?.format && request.text.format.type !== "text") features.set("json", "text.format");
  if (request.top_logprobs) features.set("logprobs", "top_logprobs");
  if (request.include?.includes(logprobsInclude)) features.set("logprobs", "include");
  for (const field of searchFields) if (request[field]) features.set("web_search", field);
  const { service_tier } = request;
  if (service_tier != null && service_tier !== "auto" && service_tier !== "default")
    features.set("service_tier", "service_tier");
  return features;
}

/**
 * The API knows neither how far a stream was nor what its response said: a failure here is an event alone, numbered as
 * the last that there can be. The worker, which does know, writes `fail` of its stream.
 */
const lastNumber = 2 ** 31 - 1;

export const responsesCodec: Codec = {
  parse(body, bodyBytes) {
    refuseDeep(body);
    const request = validate(responsesRequest, body);
    refuseStored(request);
    refuseUnbounded(request);
    const toolTokens = checkTools(request);
    const features = featuresOf(request);
    const measure = newMeasure(features);
    measureRequest(request, measure);
    const { uploads, mediaBytes, textBytes, framed } = measure;
    const inputBytes = Math.max(0, bodyBytes - mediaBytes);
    const { input, instructions, max_output_tokens } = request;
    return {
      model: request.model,
      stream: request.stream ?? false,
      textBytes: framed || features.has("tools") ? inputBytes : textBytes,
      size: {
        inputBytes: inputBytes + toolTokens,
        messages: (typeof input === "string" ? 1 : input.length) + (instructions == null ? 0 : 1),
        ...measuredSize(measure),
        choices: 1,
        ...(max_output_tokens != null && { outputCap: max_output_tokens }),
      },
      features,
      uploads,
    };
  },
  error: (error, requestId) => JSON.stringify(commonError(error, requestId)),
  streamError: (error) => errorEvent(error, lastNumber),
  ping: ": ping\n\n",
};
