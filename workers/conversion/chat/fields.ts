import { type JsonObject, list, number, object, text } from "#formats";

/** Chat fields that every conversion handles: converts, or refuses by value. */
export const commonFields: readonly string[] = [
  "model",
  "messages",
  "stream",
  "stream_options",
  "max_tokens",
  "max_completion_tokens",
  "temperature",
  "top_p",
  "n",
  "logprobs",
  "top_logprobs",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "reasoning_effort",
  "response_format",
  "modalities",
];

/** Fields of a chat request as OpenAI documents them (https://platform.openai.com/docs/api-reference/chat/create). */
const documentedFields: ReadonlySet<string> = new Set([
  ...commonFields,
  "audio",
  "frequency_penalty",
  "function_call",
  "functions",
  "logit_bias",
  "metadata",
  "prediction",
  "presence_penalty",
  "prompt_cache_key",
  "prompt_cache_retention",
  "safety_identifier",
  "seed",
  "service_tier",
  "stop",
  "store",
  "user",
  "verbosity",
  "web_search_options",
]);

export const isDocumented = (field: string): boolean => documentedFields.has(field);

// Values that request nothing.
export const isEmpty = (value: unknown): boolean =>
  !value || (typeof value === "object" && Object.keys(object(value)).length === 0);
export const isTextOnly = (value: unknown): boolean =>
  value == null || (Array.isArray(value) && value.every((each) => each === "text"));
export const isStandardTier = (value: unknown): boolean => value == null || value === "auto" || value === "default";

/** The smallest output cap of a request. */
export function capOf(request: JsonObject): number | undefined {
  const caps = [number(request["max_tokens"]), number(request["max_completion_tokens"])].filter(
    (cap) => cap !== undefined,
  );
  return caps.length > 0 ? Math.min(...caps) : undefined;
}

export const stopSequencesOf = ({ stop }: JsonObject): readonly unknown[] =>
  typeof stop === "string" ? [stop] : Array.isArray(stop) ? stop : [];

/** The reasoning of a message or a delta, under either of the names that servers use. */
export const reasoningText = (message: JsonObject): string =>
  text(message["reasoning_content"]) || text(message["reasoning"]);

/** The text of a chat message's content; some servers send it in parts. */
export const contentText = (content: unknown): string =>
  text(content) ||
  list(content)
    .map((part) => text(part["text"]) || text(part["refusal"]))
    .join("");

/** The first choice of a chat answer or chunk, for formats with a single answer. */
export const firstChoice = (choices: unknown): JsonObject | undefined =>
  list(choices).find(({ index }, position) => (typeof index === "number" ? index : position) === 0);
