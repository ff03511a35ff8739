import type { ServiceError } from "#errors";
import { type JsonObject, refuseDeep, text } from "#json";
import { chatCodec, noteSearch } from "../chat/codec.ts";
import { conversationOf, openingIn } from "../conversation.ts";
import { validate } from "../errors.ts";
import { measuredCall, newMeasure } from "../measure.ts";
import type { Codec, Feature } from "../types.ts";
import { measureRequest, refuseUnsupported } from "./measure.ts";
import { logprobsInclude, type ResponsesRequest, responsesRequest } from "./request.ts";
import { checkTools, omittedTools, toolLists } from "./tools.ts";

/** The type of an event is on the event line and in the data. */
export const eventText = (event: JsonObject): string =>
  `event: ${text(event["type"]).replace(/\s/g, "")}\ndata: ${JSON.stringify(event)}\n\n`;

export const errorEvent = ({ code, message, param }: ServiceError, sequenceNumber: number): string =>
  eventText({ type: "error", code, message, param: param ?? null, sequence_number: sequenceNumber });

/**
 * The API does not know how many events a stream had, so its error event has the highest possible number. Failures in a
 * worker are numbered by the stream's writer.
 */
const maxSequenceNumber = 2 ** 31 - 1;

function featuresOf(request: ResponsesRequest): Map<Feature, string> {
  const features = new Map<Feature, string>();
  const isOmitted = omittedTools(request);
  const given = toolLists(request).find(([tools]) => !tools.every(isOmitted));
  if (given) features.set("tools", given[1]);
  if (request.text?.format && request.text.format.type !== "text") features.set("json", "text.format");
  if (request.top_logprobs) features.set("logprobs", "top_logprobs");
  if (request.include?.includes(logprobsInclude)) features.set("logprobs", "include");
  noteSearch(request, features);
  const { service_tier } = request;
  if (service_tier != null && service_tier !== "auto" && service_tier !== "default")
    features.set("service_tier", "service_tier");
  return features;
}

/** A count is never streamed, and never runs in the background. */
export const inputTokensCodec: Codec = {
  ...chatCodec,
  parse(body, bodyBytes) {
    const { background: _, ...call } = responsesCodec.parse(body, bodyBytes);
    return { ...call, stream: false };
  },
};

export const responsesCodec: Codec = {
  ...chatCodec,
  parse(body, bodyBytes) {
    refuseDeep(body);
    const request = validate(responsesRequest, body);
    refuseUnsupported(request);
    const toolTokens = checkTools(request);
    const measure = newMeasure(featuresOf(request));
    measureRequest(request, measure);
    const { model, stream, input, instructions, max_output_tokens: outputCap } = request;
    const messages = (typeof input === "string" ? 1 : input.length) + (instructions == null ? 0 : 1);
    const { tools, prompt_cache_key } = request;
    const items = () => (typeof input === "string" ? [{ role: "user", content: input }] : input);
    return {
      model,
      stream: stream ?? false,
      ...(request.background && { background: true }),
      ...conversationOf(prompt_cache_key, () => openingIn(items(), { instructions, tools })),
      ...measuredCall(measure, bodyBytes, { messages, choices: 1 }, { toolTokens, outputCap }),
    };
  },
  streamError: (error) => errorEvent(error, maxSequenceNumber),
};
