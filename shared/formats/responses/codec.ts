import { type ServiceError } from "#errors";
import { searchFields } from "../chat/codec.ts";
import { commonError, validate } from "../errors.ts";
import { type JsonObject, refuseDeep, text } from "../json.ts";
import { measuredSize, newMeasure } from "../measure.ts";
import { type Codec, type Feature } from "../types.ts";
import { checkTools, measureRequest, refuseUnsupported } from "./measure.ts";
import { logprobsInclude, type ResponsesRequest, responsesRequest } from "./request.ts";

/** The type of an event is on the event line and in the data. */
export const eventText = (event: JsonObject): string =>
  `event: ${text(event["type"]).replace(/\s/g, "")}\ndata: ${JSON.stringify(event)}\n\n`;

/** The last event of a stream that failed. */
export const errorEvent = ({ code, message, param }: ServiceError, sequenceNumber: number): string =>
  eventText({ type: "error", code, message, param: param ?? null, sequence_number: sequenceNumber });

/**
 * The API does not know how many events a stream had: its error event has the highest possible number. Failures in a worker
 * are numbered by the stream's writer.
 */
const maxSequenceNumber = 2 ** 31 - 1;

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

export const responsesCodec: Codec = {
  parse(body, bodyBytes) {
    refuseDeep(body);
    const request = validate(responsesRequest, body);
    refuseUnsupported(request);
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
  streamError: (error) => errorEvent(error, maxSequenceNumber),
  ping: ": ping\n\n",
};
