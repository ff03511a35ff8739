import { count, isCount, object } from "#formats";

/** Token counts of one answer by price key; `input` excludes what the cache served or stored. */
export interface TokenUsage {
  readonly input: number;
  readonly cached_input: number;
  readonly cache_write: number;
  readonly cache_write_1h: number;
  readonly audio_input: number;
  readonly output: number;
  readonly audio_output: number;
}

const part = (details: unknown, field: string): number => count(object(details)[field]);

/**
 * Splits the `usage` of a chat or embeddings answer; undefined if it is missing or implausible.
 * Some providers leave reasoning out of `completion_tokens` but count it in `total_tokens`: it is billed as output.
 */
export function tokenUsage(usage: unknown): TokenUsage | undefined {
  const given = object(usage);
  const prompt = given["prompt_tokens"];
  if (!isCount(prompt) || !isCount(given["completion_tokens"] ?? 0)) return undefined;
  const completion = Math.max(count(given["completion_tokens"]), count(given["total_tokens"]) - prompt);
  const cached = Math.min(
    prompt,
    part(given["prompt_tokens_details"], "cached_tokens") || count(given["prompt_cache_hit_tokens"]),
  );
  const written = Math.min(prompt - cached, part(given["prompt_tokens_details"], "cache_write_tokens"));
  const longer = Math.min(prompt - cached - written, part(given["prompt_tokens_details"], "cache_write_1h_tokens"));
  const others = cached + written + longer;
  const audioInput = Math.min(prompt - others, part(given["prompt_tokens_details"], "audio_tokens"));
  const audioOutput = Math.min(completion, part(given["completion_tokens_details"], "audio_tokens"));
  return {
    input: prompt - others - audioInput,
    cached_input: cached,
    cache_write: written,
    cache_write_1h: longer,
    audio_input: audioInput,
    output: completion - audioOutput,
    audio_output: audioOutput,
  };
}

export const promptTokens = (usage: Partial<TokenUsage>): number =>
  (usage.input ?? 0) +
  (usage.cached_input ?? 0) +
  (usage.cache_write ?? 0) +
  (usage.cache_write_1h ?? 0) +
  (usage.audio_input ?? 0);

export const completionTokens = (usage: Partial<TokenUsage>): number => (usage.output ?? 0) + (usage.audio_output ?? 0);
