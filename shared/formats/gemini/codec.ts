import { invalidValue, type ServiceError } from "#errors";
import { isSet, object, refuseDeep } from "#json";
import { conversationOf, openingIn } from "../conversation.ts";
import { validate } from "../errors.ts";
import { measuredCall } from "../measure.ts";
import type { Codec, ParsedCall } from "../types.ts";
import { formedCount, formedRequest } from "./field-names.ts";
import { featuresOf, measureRequest, refuseUnsupported } from "./measure.ts";
import { type GeminiRequest, geminiCountRequest, geminiRequest } from "./request.ts";

/** `path` is the prefix of field names in errors. */
function parseRequest(request: GeminiRequest, path: string, bodyBytes: number): Omit<ParsedCall, "model" | "stream"> {
  refuseUnsupported(request, path);
  const measure = measureRequest(request, path, featuresOf(request, path));
  const { maxOutputTokens, candidateCount } = request.generationConfig ?? {};
  const messages = request.contents.length + (request.systemInstruction ? 1 : 0);
  const size = { messages, choices: candidateCount ?? 1 };
  const { contents, systemInstruction, tools } = request;
  const turns = () => contents.map(({ role, parts }) => ({ role: role ?? "user", content: parts }));
  return {
    ...conversationOf(undefined, () => openingIn(turns(), { instructions: systemInstruction?.parts, tools })),
    ...measuredCall(measure, bodyBytes, size, { outputCap: maxOutputTokens }),
  };
}

/** The statuses of docs/api/wire-details.md, "Error types by format". */
const statusNames: ReadonlyMap<number, string> = new Map([
  [401, "UNAUTHENTICATED"],
  [402, "FAILED_PRECONDITION"],
  [403, "PERMISSION_DENIED"],
  [404, "NOT_FOUND"],
  [405, "NOT_FOUND"],
  [408, "DEADLINE_EXCEEDED"],
  [409, "ABORTED"],
  [410, "NOT_FOUND"],
  [424, "FAILED_PRECONDITION"],
  [429, "RESOURCE_EXHAUSTED"],
  [503, "UNAVAILABLE"],
  [504, "DEADLINE_EXCEEDED"],
]);

function errorBody({ status, message }: ServiceError): string {
  const statusName = statusNames.get(status) ?? (status < 500 ? "INVALID_ARGUMENT" : "INTERNAL");
  return JSON.stringify({ error: { code: status, message, status: statusName } });
}

const serverSentEvents = {
  streamError: (error: ServiceError) => `data: ${errorBody(error)}\n\n`,
  // An empty event. Google's clients for Python and Go fail on a comment, and the Go client also on a single newline.
  ping: "\n\n",
};

/** A stream without `alt=sse` is one JSON array, and an error is its last element. */
const jsonArray = {
  streamType: "application/json; charset=utf-8",
  streamError: (error: ServiceError, _requestId: string, begun: boolean) =>
    `${begun ? ",\r\n" : "["}${errorBody(error)}\n]`,
  // White space is allowed before, between and after the elements.
  ping: "\n",
};

/** The model and `stream` come from the path, `alt=sse` from the query. */
export const geminiCodec = (model: string, stream: boolean, sse: boolean): Codec => ({
  parse(body, bodyBytes) {
    refuseDeep(body);
    return { model, stream, ...parseRequest(validate(geminiRequest, formedRequest(body)), "", bodyBytes) };
  },
  error: errorBody,
  ...(sse ? serverSentEvents : jsonArray),
});

/** The body of `countTokens` is `{contents}` or `{generateContentRequest}`. */
export function geminiCountCodec(model: string): Codec {
  const codec = geminiCodec(model, false, false);
  return {
    ...codec,
    parse(body, bodyBytes) {
      refuseDeep(body);
      const formed = object(formedCount(body));
      if (!isSet(formed["generateContentRequest"])) return codec.parse(body, bodyBytes);
      if (isSet(formed["contents"]))
        throw invalidValue("contents", "contents: use either contents or generateContentRequest, not both.");
      const { generateContentRequest } = validate(geminiCountRequest, formed);
      const call = parseRequest(generateContentRequest, "generateContentRequest.", bodyBytes);
      return { model, stream: false, ...call };
    },
  };
}

/** Returns the request whose tokens a `countTokens` body asks to count. */
export function countedRequest(body: unknown): Record<string, unknown> {
  const { generateContentRequest, ...contentsRequest } = object(formedCount(body));
  const { model: _, ...request } = isSet(generateContentRequest) ? object(generateContentRequest) : contentsRequest;
  return request;
}
