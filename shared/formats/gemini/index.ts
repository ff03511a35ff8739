/**
 * The API's side of Google's Gemini format (generateContent, streamGenerateContent, countTokens). Sources: Google's API
 * reference; docs/api/wire-details.md. Its conversion is in workers/conversion/gemini.
 *
 *   geminiCodec, geminiCountCodec     the model, and whether it streams, come from the path
 *   countedRequest, countAnswer       the request inside a countTokens body, and the answer
 *   formedRequest, ...                fields under their one name: the provider accepts two spellings of each
 *
 * Throws `invalidValue` naming the field in camelCase.
 */
export { countAnswer, countedRequest, geminiCodec, geminiCountCodec } from "./codec.ts";
export { formedRequest, formedSchema, formedThinking } from "./field-names.ts";
export { checkLink, geminiUpload, kindOf } from "./measure.ts";
export { geminiRequest } from "./request.ts";
