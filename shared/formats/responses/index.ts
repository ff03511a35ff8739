/**
 * The API's side of OpenAI's Responses format. Sources: OpenAI's API reference for responses and their streaming events;
 * docs/api/wire-details.md. Its conversion is in workers/conversion/responses.
 *
 *   responsesCodec, responsesRequest   parse, errors, ping; the schema
 *   eventText, errorEvent              one event as text; the event that ends a stream that failed
 *   responsesUpload                    the upload that a part refers to
 *
 * Throws `invalidValue` naming the field.
 */
export { errorEvent, eventText, responsesCodec } from "./codec.ts";
export { responsesUpload } from "./measure.ts";
export { logprobsInclude, responsesRequest } from "./request.ts";
