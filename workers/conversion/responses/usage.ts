import { count, isCount, type JsonObject, object } from "#formats";
import { tokenUsage } from "../usage.ts";

/**
 * The usage of a response in chat shape; undefined if there is none that can be believed. `prompt_tokens` has everything in it; the details
 * are parts of it. Cache writes kept for longer than usual (12 hours) are billed as the other provider's hour is.
 */
export function chatUsage(usage: unknown): JsonObject | undefined {
  const { input_tokens, output_tokens, input_tokens_details, output_tokens_details } = object(usage);
  if (!isCount(input_tokens) || !isCount(output_tokens ?? 0)) return undefined;
  const { cached_tokens, cache_write_tokens, cache_write_tokens_details, audio_tokens } = object(input_tokens_details);
  const written = count(cache_write_tokens);
  const long = Math.min(written, count(object(cache_write_tokens_details)["ttl_12h_tokens"]));
  const prompt = count(input_tokens);
  const completion = count(output_tokens);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: count(cached_tokens),
      cache_write_tokens: written - long,
      cache_write_1h_tokens: long,
      audio_tokens: count(audio_tokens),
    },
    completion_tokens_details: { reasoning_tokens: count(object(output_tokens_details)["reasoning_tokens"]) },
  };
}

/** The usage of a chat answer as the format has it; the estimate where it has none that can be believed. */
export function responsesUsage(usage: unknown, estimate: { input: number; output: number }): JsonObject {
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
