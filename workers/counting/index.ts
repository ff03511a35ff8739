/**
 * Estimates the tokens of a prompt where no provider counts them, for `count_tokens` of the Messages format and Gemini's
 * `:countTokens`. Text counts by OpenAI's o200k_base, templates and media by the rules in prompt.ts and media.ts. Plain
 * text to OpenAI's models since GPT-4o is exact; other tokenizers differ by 5 to 20 % in English, by more in code and
 * other scripts.
 *
 * Media count by the rules that the model's owner publishes, within 15 % for images whose size can be read, WAV and MP3,
 * and PDFs whose pages and text can be (deflated or plain, not encrypted); a link counts as a usual file. Without a known
 * owner an average rule applies, which may be off by a factor of five.
 *
 * Tokenizing and reading documents happen in a worker thread, so the event loop is not blocked. Over 128 KB a sample is
 * tokenized and the count extrapolated. Where the thread does not answer in time, or too many wait for it, text counts a
 * token per four bytes, and documents by their size. Throws the signal's reason when it is aborted, and `invalidValue` for
 * JSON that is nested too deep.
 */
import { estimateTokens, type JsonObject } from "#formats";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { promptOf } from "./prompt.ts";
import { gather, sampleOf } from "./sample.ts";
import { createTokenizer } from "./tokenizer.ts";

export interface Counting {
  /** `request`: for chat completions. `owner`: of the model (`Model.ownedBy`). */
  estimate(request: JsonObject, signal: AbortSignal, owner?: string): Promise<number>;
  /** Ends the thread; running estimates resolve by their bytes. */
  close(): Promise<void>;
}

export function createCounting(deps: { clock: Clock; log: Logger }): Counting {
  const tokenizer = createTokenizer(deps);
  return {
    async estimate(request, signal, owner) {
      signal.throwIfAborted();
      const { allowance, documents, ...all } = await gather(promptOf(request, owner));
      if (all.bytes === 0 && documents.length === 0) return allowance;
      const sample = await sampleOf(all);
      const counted = await tokenizer.count(
        { texts: sample.texts, documents: documents.map(({ base64 }) => base64) },
        signal,
      );
      const textTokens = counted
        ? Math.ceil((counted.tokens * all.bytes) / Math.max(1, sample.bytes))
        : estimateTokens(all.bytes);
      const documentTokens = documents.reduce((sum, { tokens }, n) => sum + tokens(counted?.documents[n]), 0);
      return allowance + textTokens + documentTokens;
    },
    close: () => tokenizer.close(),
  };
}
