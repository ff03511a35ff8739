/**
 * Google's Gemini format (generateContent, streamGenerateContent, countTokens), each way to and from chat, and past it.
 * Sources: the provider's public API reference and guides, the types of its client; wire-details ("Streams", "Errors",
 * "What crosses"); its OpenAI-compatible interface for `extra_content.google` and `extra_body.google`.
 *
 *   geminiCodec, geminiCountCodec     the API's face; the model and whether it streams come from the path
 *   geminiDialect                     the worker's face, its streams as server-sent events
 *   geminiArrayDialect                the same for a caller who did not ask for `alt=sse`: a stream is one JSON array
 *   countedRequest, countAnswer       what a countTokens body asks about, and its answer
 *
 * The provider reads fields under two names each (`maxOutputTokens`, `max_output_tokens`); errors name the first. Neither
 * what `fromChatRequest` nor what `native.prepare` returns has a `model`: it goes into the path. Usage in chat shape:
 * `prompt_tokens` has the cached tokens and those of tools in it, `completion_tokens` the thoughts.
 */
export { countAnswer, countedRequest, geminiCodec, geminiCountCodec } from "./codec.ts";
export { checkLink } from "./links.ts";
export { kindOf } from "./media.ts";
export { formedRequest, formedSchema, formedThinking } from "./names.ts";
export { geminiRequest } from "./request.ts";
export { geminiUpload } from "./uploads.ts";
