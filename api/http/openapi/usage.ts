import { z } from "zod";
import { usd } from "./operation.ts";

/** In the answers of chat and Responses, and in the last usage of their streams. */
export const costUsd = usd.optional().describe("What the call was charged");

/** Of OpenAI's formats for embeddings and legacy completions. */
export const usage = z
  .looseObject({
    prompt_tokens: z.int(),
    completion_tokens: z.int().optional(),
    total_tokens: z.int(),
    cost_usd: costUsd,
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
