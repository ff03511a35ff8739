import { count, isCount, type JsonObject, object } from "#formats";
import { tokenUsage } from "../usage.ts";

/** Undefined if the usage is missing or implausible. */
export function convertUsageToChat(usage: unknown): JsonObject | undefined {
  const given = object(usage);
  if (!isCount(given["input_tokens"]) || !isCount(given["output_tokens"] ?? 0)) return undefined;
  const cached = count(given["cache_read_input_tokens"]);
  const written = count(given["cache_creation_input_tokens"]);
  const hour = Math.min(written, count(object(given["cache_creation"])["ephemeral_1h_input_tokens"]));
  const thinking = count(object(given["output_tokens_details"])["thinking_tokens"]);
  const prompt = count(given["input_tokens"]) + cached + written;
  const completion = count(given["output_tokens"]);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: cached,
      cache_write_tokens: written - hour,
      cache_write_1h_tokens: hour,
    },
    ...(thinking > 0 && { completion_tokens_details: { reasoning_tokens: thinking } }),
  };
}

/** Fields that the client's types require and chat has no value for. */
const unknownFields = {
  cache_creation: null,
  inference_geo: null,
  server_tool_use: null,
  service_tier: null,
  speed: null,
};

export const noUsage: JsonObject = {
  ...unknownFields,
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 0,
  output_tokens_details: null,
};

/** The estimate replaces usage that is missing or implausible. */
export function convertUsageFromChat(usage: unknown, estimate: { input: number; output: number }): JsonObject {
  const counted = tokenUsage(usage);
  if (!counted) return { ...noUsage, input_tokens: estimate.input, output_tokens: estimate.output };
  const { prompt_tokens, prompt_tokens_details, completion_tokens_details } = object(usage);
  const { cache_write_tokens, cache_write_1h_tokens } = object(prompt_tokens_details);
  const uncached = count(prompt_tokens) - counted.cached_input;
  const written = Math.min(uncached, count(cache_write_tokens) + count(cache_write_1h_tokens));
  const thinking = count(object(completion_tokens_details)["reasoning_tokens"]);
  return {
    ...noUsage,
    input_tokens: uncached - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: counted.cached_input,
    output_tokens: counted.output + counted.audio_output,
    output_tokens_details: thinking > 0 ? { thinking_tokens: thinking } : null,
  };
}
