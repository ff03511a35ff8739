/**
 * Anthropic's Messages format, the API's side: POST /v1/messages and its count_tokens. Sources: the provider's public API
 * reference and the types of its client; docs/api/wire-details.md ("Streams", "Errors", "What crosses").
 */
export { countTokensCodec, messagesCodec, messagesHeaders } from "./codec.ts";
export { messagesUpload } from "./measure.ts";
export { countTokensRequest, messagesRequest } from "./request.ts";
