import { invalidValue, type ServiceError } from "#errors";
import { validate } from "../errors.ts";
import { isSet, object, refuseDeep } from "../json.ts";
import { measuredSize } from "../measure.ts";
import type { Codec, ParsedCall } from "../types.ts";
import { measureRequest } from "./measure.ts";
import { formedCount, formedRequest } from "./names.ts";
import { featuresOf, refuseStored } from "./refuse.ts";
import { type GeminiRequest, geminiCountRequest, geminiRequest } from "./request.ts";

type Measured = Omit<ParsedCall, "model" | "stream">;

function measured(request: GeminiRequest, at: string, bodyBytes: number): Measured {
  refuseStored(request, at);
  const features = featuresOf(request, at);
  const measure = measureRequest(request, at, features);
  const { uploads, mediaBytes, textBytes, framed } = measure;
  const inputBytes = Math.max(0, bodyBytes - mediaBytes);
  const { maxOutputTokens, candidateCount } = request.generationConfig ?? {};
  return {
    textBytes: framed || features.has("tools") ? inputBytes : textBytes,
    size: {
      inputBytes,
      messages: request.contents.length + (request.systemInstruction ? 1 : 0),
      ...measuredSize(measure),
      choices: candidateCount ?? 1,
      ...(maxOutputTokens != null && { outputCap: maxOutputTokens }),
    },
    features,
    uploads,
  };
}

/** wire-details, "Errors". */
function statusName({ status }: ServiceError): string {
  switch (status) {
    case 401:
      return "UNAUTHENTICATED";
    case 402:
      return "FAILED_PRECONDITION";
    case 403:
      return "PERMISSION_DENIED";
    case 404:
    case 405:
    case 410:
      return "NOT_FOUND";
    case 409:
      return "ABORTED";
    case 429:
      return "RESOURCE_EXHAUSTED";
    case 503:
      return "UNAVAILABLE";
    case 408:
    case 504:
      return "DEADLINE_EXCEEDED";
    default:
      return status < 500 ? "INVALID_ARGUMENT" : "INTERNAL";
  }
}

const errorBody = (error: ServiceError): string =>
  JSON.stringify({ error: { code: error.status, message: error.message, status: statusName(error) } });

const sseFace = {
  streamError: (error: ServiceError) => `data: ${errorBody(error)}\n\n`,
  // In a frame with a chunk a comment would take it away from some clients.
  ping: ": ping\n\n",
};

/** Without `alt=sse` a stream is one JSON array; a failure is the last element of it, or its only one. */
const arrayFace = {
  streamType: "application/json; charset=utf-8",
  streamError: (error: ServiceError, _requestId: string, begun: boolean) =>
    `${begun ? ",\r\n" : "["}${errorBody(error)}\n]`,
  // White space may stand before, between and after the elements.
  ping: "\n",
};

/** The model and whether it streams are in the path, and how in its query: `alt=sse`. */
export const geminiCodec = (model: string, stream: boolean, sse: boolean): Codec => ({
  parse(body, bodyBytes) {
    refuseDeep(body);
    return { model, stream, ...measured(validate(geminiRequest, formedRequest(body)), "", bodyBytes) };
  },
  error: errorBody,
  ...(sse ? sseFace : arrayFace),
});

/** Of `countTokens`: `{contents}` or `{generateContentRequest}`. */
export const geminiCountCodec = (model: string): Codec => ({
  ...geminiCodec(model, false, false),
  parse(body, bodyBytes) {
    refuseDeep(body);
    const formed = object(formedCount(body));
    if (!isSet(formed["generateContentRequest"])) return geminiCodec(model, false, false).parse(body, bodyBytes);
    if (isSet(formed["contents"]))
      throw invalidValue("contents", "contents: give it or generateContentRequest, not both.");
    const { generateContentRequest } = validate(geminiCountRequest, formed);
    const call = measured(generateContentRequest, "generateContentRequest.", bodyBytes);
    return { model, stream: false, ...call };
  },
});

/** The request whose tokens a `countTokens` body asks for. */
export function countedRequest(body: unknown): Record<string, unknown> {
  const { generateContentRequest, ...alone } = object(formedCount(body));
  const { model: _, ...request } = isSet(generateContentRequest) ? object(generateContentRequest) : alone;
  return request;
}

/** The answer of `countTokens`. */
export const countAnswer = (totalTokens: number): Record<string, unknown> => ({ totalTokens });
