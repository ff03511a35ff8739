import { z } from "zod";

/** Of OpenAI's formats for embeddings and legacy completions. */
export const usage = z
  .looseObject({
    prompt_tokens: z.int(),
    completion_tokens: z.int().optional(),
    total_tokens: z.int(),
    prompt_tokens_details: z
      .looseObject({
        cached_tokens: z.int().nullish().describe("Read from the provider's cache"),
        cache_write_tokens: z.int().nullish().describe("Written to it"),
        audio_tokens: z.int().nullish(),
      })
      .nullish(),
    completion_tokens_details: z
      .looseObject({ reasoning_tokens: z.int().nullish(), audio_tokens: z.int().nullish() })
      .nullish(),
  })
  .meta({ id: "Usage", description: "The tokens that are charged; the parts are included in the sums" });
