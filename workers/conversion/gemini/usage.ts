import { count, isCount, type JsonObject, list, object } from "#formats";
import { tokenUsage } from "../usage.ts";

const audioOf = (details: unknown): number =>
  list(details).reduce((sum, each) => sum + (each["modality"] === "AUDIO" ? count(each["tokenCount"]) : 0), 0);

/**
 * The provider's `usageMetadata` in chat shape; undefined if there is none that can be believed. `promptTokenCount` has the cached tokens in it,
 * but not what the provider's tools put into the prompt; `candidatesTokenCount` has no thoughts in it.
 */
export function chatUsage(usage: unknown): JsonObject | undefined {
  const given = object(usage);
  const { promptTokenCount, candidatesTokenCount, thoughtsTokenCount } = given;
  if (![promptTokenCount, candidatesTokenCount ?? 0, thoughtsTokenCount ?? 0].every(isCount)) return undefined;
  const prompt = count(promptTokenCount) + count(given["toolUsePromptTokenCount"]);
  const thoughts = count(thoughtsTokenCount);
  const completion = count(candidatesTokenCount) + thoughts;
  const audio = audioOf(given["promptTokensDetails"]) - audioOf(given["cacheTokensDetails"]);
  const spoken = audioOf(given["candidatesTokensDetails"]);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: count(given["cachedContentTokenCount"]),
      audio_tokens: Math.max(0, audio),
    },
    completion_tokens_details: { reasoning_tokens: thoughts, ...(spoken > 0 && { audio_tokens: spoken }) },
  };
}

/** Chat's usage as the format has it; the estimate where there is none that can be believed. */
export function geminiUsage(usage: unknown, estimate: { input: number; output: number }): JsonObject {
  const counted = tokenUsage(usage);
  const { prompt_tokens, completion_tokens_details } = object(usage);
  const prompt = counted ? count(prompt_tokens) : estimate.input;
  const completion = counted ? counted.output + counted.audio_output : estimate.output;
  const thoughts = counted ? Math.min(completion, count(object(completion_tokens_details)["reasoning_tokens"])) : 0;
  const cached = counted?.cached_input ?? 0;
  const audio = counted?.audio_input ?? 0;
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: completion - thoughts,
    totalTokenCount: prompt + completion,
    ...(cached > 0 && { cachedContentTokenCount: cached }),
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
    ...(audio > 0 && {
      promptTokensDetails: [
        { modality: "TEXT", tokenCount: prompt - audio },
        { modality: "AUDIO", tokenCount: audio },
      ],
    }),
  };
}
