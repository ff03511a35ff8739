import { type JsonObject, object } from "../loose.ts";
import { number } from "../read.ts";

/** Fields of a chat request that every format takes, or looks at and refuses by their value. */
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

/** Fields of a chat request by which providers take an order to search the web. */
export const searchFields: readonly string[] = ["web_search_options", "search_parameters", "enable_search", "plugins"];

/** The values of its fields that ask for nothing. */
export const isEmpty = (value: unknown): boolean =>
  !value || (typeof value === "object" && Object.keys(object(value)).length === 0);
export const isTextOnly = (value: unknown): boolean =>
  value == null || (Array.isArray(value) && value.every((each) => each === "text"));
export const isStandardTier = (value: unknown): boolean => value == null || value === "auto" || value === "default";

/** The least of its caps. */
export function capOf(request: JsonObject): number | undefined {
  const caps = [number(request["max_tokens"]), number(request["max_completion_tokens"])].filter(
    (cap) => cap !== undefined,
  );
  return caps.length > 0 ? Math.min(...caps) : undefined;
}

export const stopSequencesOf = ({ stop }: JsonObject): readonly unknown[] =>
  typeof stop === "string" ? [stop] : Array.isArray(stop) ? stop : [];
