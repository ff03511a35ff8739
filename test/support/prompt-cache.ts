import { createHash } from "node:crypto";

/** The prompt cache of one provider, which has no limits: it reads the longest prefix of whole messages that it has seen. */
export function promptCache() {
  const seen = new Set<string>();
  return (messages: unknown): { readonly prompt: number; readonly cached: number } => {
    let prompt = 0;
    let cached = 0;
    const prefix = createHash("sha256");
    for (const message of Array.isArray(messages) ? (messages as unknown[]) : []) {
      const json = JSON.stringify(message);
      prompt += Math.ceil(json.length / 4);
      const key = prefix.update(json).copy().digest("base64");
      if (seen.has(key)) cached = prompt;
      seen.add(key);
    }
    return { prompt, cached };
  };
}

export type PromptCache = ReturnType<typeof promptCache>;

/** The usage of a chat completion whose prompt came through the cache. */
export const usageWith = ({ prompt, cached }: ReturnType<PromptCache>) => ({
  prompt_tokens: prompt,
  completion_tokens: 8,
  total_tokens: prompt + 8,
  prompt_tokens_details: { cached_tokens: cached },
});
