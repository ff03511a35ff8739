/**
 * Anthropic's Messages format, each way to and from chat, and past it. Sources: the provider's public API reference and the
 * types of its client; wire-details ("Streams", "Errors", "What crosses"); OpenRouter's documentation for
 * `reasoning_details`.
 *
 *   messagesCodec, countTokensCodec   the API's face of POST /v1/messages and of its count_tokens
 *   messagesDialect                   the worker's face
 *
 * Usage in chat shape: `prompt_tokens` has everything in it; of `prompt_tokens_details`, `cached_tokens`,
 * `cache_write_tokens` (kept 5 minutes) and `cache_write_1h_tokens` are parts of it, and none is in another.
 */
export { countTokensCodec, messagesCodec, messagesHeaders } from "./codec.ts";
export { countTokensRequest, messagesRequest } from "./request.ts";
export { messagesUpload } from "./uploads.ts";
