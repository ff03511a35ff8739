import { count, isCount, type JsonObject, list, object } from "#formats";
import { type TokenEstimate } from "../converter.ts";
import { tokenUsage } from "../usage.ts";

const audioTokens = (details: unknown): number =>
  list(details).reduce((sum, { modality, tokenCount }) => sum + (modality === "AUDIO" ? count(tokenCount) : 0), 0);

/**
 * The provider's `usageMetadata` in chat shape; undefined if it is missing or invalid. `promptTokenCount` includes cached
 * tokens but not the prompts of the provider's tools; `candidatesTokenCount` does not include thoughts.
 */
export function convertUsageToChat(usage: unknown): JsonObject | undefined {
  const metadata = object(usage);
  const { promptTokenCount, candidatesTokenCount, thoughtsTokenCount } = metadata;
  if (![promptTokenCount, candidatesTokenCount ?? 0, thoughtsTokenCount ?? 0].every(isCount)) return undefined;
  const prompt = count(promptTokenCount) + count(metadata["toolUsePromptTokenCount"]);
  const thoughts = count(thoughtsTokenCount);
  const completion = count(candidatesTokenCount) + thoughts;
  const audioInput = audioTokens(metadata["promptTokensDetails"]) - audioTokens(metadata["cacheTokensDetails"]);
  const audioOutput = audioTokens(metadata["candidatesTokensDetails"]);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: count(metadata["cachedContentTokenCount"]),
      audio_tokens: Math.max(0, audioInput),
    },
    completion_tokens_details: { reasoning_tokens: thoughts, ...(audioOutput > 0 && { audio_tokens: audioOutput }) },
  };
}

/** Chat usage as `usageMetadata`; the estimate where usage is missing or invalid. */
export function convertUsageFromChat(usage: unknown, estimate: TokenEstimate): JsonObject {
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
