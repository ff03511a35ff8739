/**
 * How many tokens a prompt has, where its maker cannot be asked: for the Messages interface's `count_tokens` and Gemini's
 * `:countTokens`. An estimate, in tokens: text by OpenAI's o200k_base, templates and media by the rules in prompt.ts and
 * media.ts. It is exact for plain text to OpenAI's models since GPT-4o; other makers' tokenizers differ by 5 to 20 % in
 * English, by more in code and other scripts.
 *
 * Text is tokenized in a thread of its own: the event loop is never held up. Of more than 128 KB a sample is tokenized and
 * the count of all is worked out from it. Where the thread does not answer in time, or too many wait for it, bytes are
 * divided by four. Throws the signal's reason when it is aborted, and `invalidValue` for JSON that is nested too deep.
 */
import { estimateTokens, type Loose } from "#formats";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { promptOf } from "./prompt.ts";
import { gather, sampleOf } from "./sample.ts";
import { createTokenizer } from "./tokenizer.ts";

export interface Counting {
  /** Of a request for chat completions, as it came or was translated. */
  estimate(request: Loose, signal: AbortSignal): Promise<number>;
  /** Ends the thread; estimates under way are answered by their bytes. */
  close(): Promise<void>;
}

export function createCounting(deps: { clock: Clock; log: Logger }): Counting {
  const tokenizer = createTokenizer(deps);
  return {
    async estimate(request, signal) {
      signal.throwIfAborted();
      const { allowance, ...all } = await gather(promptOf(request));
      if (all.bytes === 0) return allowance;
      const sample = await sampleOf(all);
      const tokens = await tokenizer.count(sample.texts, signal);
      return (
        allowance + (tokens === undefined ? estimateTokens(all.bytes) : Math.ceil((tokens * all.bytes) / sample.bytes))
      );
    },
    close: () => tokenizer.close(),
  };
}
