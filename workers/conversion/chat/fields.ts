import { invalidValue } from "#errors";
import { ownDetails, searchFields } from "#formats";
import { type JsonObject, list, number, object, text } from "#json";
import { type IgnoredParams, ignoredParams } from "../converter.ts";

/** Chat fields that every conversion either converts or refuses by value. */
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
export const documentedFields: ReadonlySet<string> = new Set([
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

// Values that request nothing.
export const isEmpty = (value: unknown): boolean =>
  !value || (typeof value === "object" && Object.keys(object(value)).length === 0);
const isTextOnly = (value: unknown): boolean =>
  value == null || (Array.isArray(value) && value.every((each) => each === "text"));
export const isStandardTier = (value: unknown): boolean => value == null || value === "auto" || value === "default";

export function refuseParam(param: string): never {
  throw invalidValue(param, `${param} is not supported by this model.`);
}

/** A field that cannot be converted; values that request nothing are accepted. */
export type RefusedField = readonly [field: string, isHarmless: (value: unknown) => boolean];

/** Fields of chat that no other format has. */
export const refusedEverywhere: readonly RefusedField[] = [
  ["modalities", isTextOnly],
  ...["prediction", "logit_bias", "functions", ...searchFields].map((field) => [field, isEmpty] as const),
];

/** Refuses fields that change the meaning; other fields that cannot be converted are ignored. */
export function checkFields(
  request: JsonObject,
  refused: readonly RefusedField[],
  convertible: ReadonlySet<string>,
): IgnoredParams {
  for (const [field, isHarmless] of refused) if (!isHarmless(request[field])) refuseParam(field);
  const ignored = ignoredParams();
  for (const [field, value] of Object.entries(request)) if (!convertible.has(field)) ignored.add(field, value);
  return ignored;
}

/**
 * The tool choice for formats that support only functions; `name` is the one function that must be called. Returns undefined
 * for any other choice.
 */
export function functionChoice(choice: unknown) {
  if (choice == null) return { mode: "auto" };
  if (choice === "auto" || choice === "none" || choice === "required") return { mode: choice };
  const { type, function: named, allowed_tools } = object(choice);
  const { name } = object(named);
  if (type === "function" && typeof name === "string") return { mode: "required", name };
  if (type !== "allowed_tools") return undefined;
  const { mode, tools } = object(allowed_tools);
  const allowed = new Set(list(tools).map((tool) => object(tool["function"])["name"]));
  return { mode: mode === "required" ? "required" : "auto", allowed };
}

/** The effort of a thinking budget, in tokens. */
export function effortOfBudget(budget: number): string {
  if (budget < 4096) return "low";
  return budget < 16_384 ? "medium" : "high";
}

/** Thinking counts towards the output cap; a fifth of the cap is reserved for the answer. */
export const maxThinking = (cap: number): number => Math.floor(cap * 0.8);

/** The smallest output cap of a request. */
export function capOf(request: JsonObject): number | undefined {
  const caps = [number(request["max_tokens"]), number(request["max_completion_tokens"])].filter(
    (cap) => cap !== undefined,
  );
  return caps.length > 0 ? Math.min(...caps) : undefined;
}

export const stopSequencesOf = ({ stop }: JsonObject): readonly unknown[] =>
  typeof stop === "string" ? [stop] : Array.isArray(stop) ? stop : [];

/** The reasoning of a message or a delta, under any of the names that servers use. */
export const reasoningText = (message: JsonObject): string =>
  text(message["reasoning_content"]) ||
  text(message["reasoning"]) ||
  ownDetails(message["reasoning_details"])
    .map((detail) => text(detail["text"]))
    .join("");

/** The text of a chat message's content; some servers send it in parts. */
export const contentText = (content: unknown): string =>
  text(content) ||
  list(content)
    .map((part) => text(part["text"]) || text(part["refusal"]))
    .join("");

/** The index of a choice or a candidate, which servers may omit. */
export const indexOf = ({ index }: JsonObject, position: number): number => number(index) ?? position;

/** The first choice of a chat answer or chunk, for formats with a single answer. */
export const firstChoice = (choices: unknown): JsonObject | undefined =>
  list(choices).find((choice, position) => indexOf(choice, position) === 0);
