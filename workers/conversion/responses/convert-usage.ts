import { count, isCount, type JsonObject, object } from "#formats";
import { type TokenEstimate } from "../converter.ts";
import { tokenUsage } from "../usage.ts";

/**
 * A response's usage in chat shape; undefined if it is missing or invalid. Cache writes with the longer lifetime (12 hours)
 * are billed like Anthropic's of one hour.
 */
export function convertUsageToChat(usage: unknown): JsonObject | undefined {
  const { input_tokens, output_tokens, input_tokens_details, output_tokens_details } = object(usage);
  if (!isCount(input_tokens) || !isCount(output_tokens ?? 0)) return undefined;
  const { cached_tokens, cache_write_tokens, cache_write_tokens_details, audio_tokens } = object(input_tokens_details);
  const cacheWrites = count(cache_write_tokens);
  const longCacheWrites = Math.min(cacheWrites, count(object(cache_write_tokens_details)["ttl_12h_tokens"]));
  const prompt = count(input_tokens);
  const completion = count(output_tokens);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: count(cached_tokens),
      cache_write_tokens: cacheWrites - longCacheWrites,
      cache_write_1h_tokens: longCacheWrites,
      audio_tokens: count(audio_tokens),
    },
    completion_tokens_details: { reasoning_tokens: count(object(output_tokens_details)["reasoning_tokens"]) },
  };
}

/** Chat usage as a response has it; the estimate where usage is missing or invalid. */
export function convertUsageFromChat(usage: unknown, estimate: TokenEstimate): JsonObject {
  const counted = tokenUsage(usage);
  const { prompt_tokens, prompt_tokens_details, completion_tokens_details } = object(usage);
  const input = counted ? count(prompt_tokens) : estimate.input;
  const output = counted ? counted.output + counted.audio_output : estimate.output;
  const { cache_write_tokens, cache_write_1h_tokens } = object(counted && prompt_tokens_details);
  const { reasoning_tokens } = object(counted && completion_tokens_details);
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: counted?.cached_input ?? 0,
      cache_write_tokens: count(cache_write_tokens) + count(cache_write_1h_tokens),
    },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: count(reasoning_tokens) },
    total_tokens: input + output,
  };
}
