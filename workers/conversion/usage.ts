import { count, isCount, object } from "#json";

/**
 * The `usage` of a chat or embeddings answer by price key. Returns undefined if it is missing or implausible. `input`
 * excludes tokens that the cache served or stored. Some providers omit reasoning from `completion_tokens` but count it in
 * `total_tokens`: it is billed as output.
 */
export function tokenUsage(usage: unknown) {
  const given = object(usage);
  const input = object(given["prompt_tokens_details"]);
  const output = object(given["completion_tokens_details"]);
  const prompt = given["prompt_tokens"];
  if (!isCount(prompt) || !isCount(given["completion_tokens"] ?? 0)) return undefined;
  const completion = Math.max(count(given["completion_tokens"]), count(given["total_tokens"]) - prompt);
  // Each part is limited to what the parts before it leave of the prompt, so that no token counts twice.
  let rest = prompt;
  const take = (tokens: unknown): number => {
    const taken = Math.min(rest, count(tokens));
    rest -= taken;
    return taken;
  };
  const cached_input = take(count(input["cached_tokens"]) || given["prompt_cache_hit_tokens"]);
  const written = count(input["cache_write_tokens"]);
  const writtenLong = Math.min(written, count(input["cache_write_1h_tokens"]));
  const cache_write_1h = take(writtenLong);
  const cache_write = take(written - writtenLong);
  const audio_input = take(input["audio_tokens"]);
  const audio_output = Math.min(completion, count(output["audio_tokens"]));
  const reasoning = Math.min(completion - audio_output, count(output["reasoning_tokens"]));
  return {
    input: rest,
    cached_input,
    cache_write,
    cache_write_1h,
    audio_input,
    output: completion - audio_output,
    audio_output,
    ...(reasoning > 0 && { reasoning }),
  };
}

type TokenUsage = NonNullable<ReturnType<typeof tokenUsage>>;

export const promptTokens = (usage: Partial<TokenUsage>): number =>
  (["input", "cached_input", "cache_write", "cache_write_1h", "audio_input"] as const).reduce(
    (sum, key) => sum + (usage[key] ?? 0),
    0,
  );

export const completionTokens = (usage: Partial<TokenUsage>): number => (usage.output ?? 0) + (usage.audio_output ?? 0);
