import { byteLength, type JsonObject, object } from "./loose.ts";
import { count, isCount } from "./read.ts";

/** Token counts of one answer by the price key that each is billed under; `input` is what no cache served. */
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
 * The `usage` object of a chat or embeddings answer; undefined where the provider gave none that can be believed.
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

/** A rough count where a provider gives none: four bytes to a token, as English text has it. */
export const estimateTokens = (bytes: number): number => Math.ceil(bytes / 4);

/** Tokens of the prompt, however each is billed. */
export const promptTokens = (usage: Partial<TokenUsage>): number =>
  (usage.input ?? 0) +
  (usage.cached_input ?? 0) +
  (usage.cache_write ?? 0) +
  (usage.cache_write_1h ?? 0) +
  (usage.audio_input ?? 0);

export const completionTokens = (usage: Partial<TokenUsage>): number => (usage.output ?? 0) + (usage.audio_output ?? 0);

/** UTF-8 bytes of what a delta or a message says: text, reasoning, refusal and tool calls. */
export function outputBytes(delta: JsonObject): number {
  let bytes = byteLength(delta["content"]) + byteLength(delta["refusal"]);
  bytes += byteLength(delta["reasoning_content"] ?? delta["reasoning"]);
  if (Array.isArray(delta["tool_calls"]))
    for (const call of delta["tool_calls"]) {
      const { name, arguments: given } = object(object(call)["function"]);
      bytes += byteLength(name) + byteLength(given);
    }
  return bytes;
}
