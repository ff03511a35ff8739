/**
 * Estimates the tokens of a prompt whose provider has no counting endpoint: for the Messages interface's `count_tokens`,
 * Responses' `input_tokens` and Gemini's `:countTokens`. Text is counted with OpenAI's o200k_base, templates and media by
 * the rules in prompt.ts and media.ts. The estimate is exact for plain text to OpenAI's models since GPT-4o; other
 * providers' tokenizers differ by 5 to 20 % in English, and by more in code and other scripts.
 *
 * Media are counted by the rules that the model's owner publishes, within 15 % for images whose size can be read, WAV and
 * MP3, and PDFs whose pages and text can be read (deflated or plain, not encrypted); a link counts as a typical file. Models
 * without an owner use an average rule, which may be off by a factor of five.
 *
 * Text is tokenized and files are read in a thread, so the event loop is never blocked. Above 128 KB only a sample is
 * tokenized and the total is extrapolated. If the thread does not answer in time, or too many prompts wait for it, bytes are
 * divided by four, and documents are counted by their bytes. Throws the signal's reason when it is aborted, and
 * `invalidValue` for JSON that is nested too deep.
 *
 * The length of a recording, which determines the price of a transcription, is read in a separate thread: accounts take
 * turns, and a file that takes longer than a second has no length that can be determined.
 */
import { estimateTokens } from "#formats";
import type { JsonObject } from "#json";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { createLimitedThread } from "../limited-thread.ts";
import type { Measured, Readable } from "./media.ts";
import type { PdfSize } from "./pdf.ts";
import { promptOf } from "./prompt.ts";
import { createRecordings, type Recording } from "./recordings.ts";
import { readPrompt, sampleOf } from "./sample.ts";

export { fileTokens, rulesOf } from "./media.ts";

const options = {
  name: "counting",
  url: new URL("./thread.ts", import.meta.url),
  limitMs: 1_000,
  waitLimitMs: 5_000,
  maxWaiting: 256,
  maxOfAccount: 256,
};

/** The parts of a prompt that are sent to the thread. */
export interface Countable {
  readonly texts: readonly string[];
  readonly documents: readonly Readable[];
}

export interface CountedTokens {
  /** The total of all texts. */
  readonly tokens: number;
  /** Measurements in the order of the documents; undefined for a document that could not be read. */
  readonly documents: readonly Measured[];
}

export type Counting = ReturnType<typeof createCounting>;

export function createCounting(deps: { clock: Clock; log: Logger }) {
  const thread = createLimitedThread<Countable, CountedTokens>(options, deps);
  const recordings = createRecordings(deps);

  /** Returns undefined if too many prompts wait, time runs out, or the thread ends. */
  async function count(prompt: Countable, signal: AbortSignal): Promise<CountedTokens | undefined> {
    const outcome = await thread.run(() => prompt, "", signal);
    return typeof outcome === "object" ? outcome.result : undefined;
  }

  return {
    /** Estimates a chat request, original or converted. `owner` is the model's owner (`Model.ownedBy`). */
    async estimate(request: JsonObject, signal: AbortSignal, owner?: string): Promise<number> {
      signal.throwIfAborted();
      const { allowance, documents, ...all } = await readPrompt(promptOf(request, owner));
      if (all.bytes === 0 && documents.length === 0) return allowance;
      const sample = await sampleOf(all);
      const counted = await count(
        { texts: sample.texts, documents: documents.map(({ type, base64 }) => ({ type, base64 })) },
        signal,
      );
      const textTokens = counted
        ? Math.ceil((counted.tokens * all.bytes) / Math.max(1, sample.bytes))
        : estimateTokens(all.bytes);
      const documentTokens = documents.reduce((sum, { tokens }, n) => sum + tokens(counted?.documents[n]), 0);
      return allowance + textTokens + documentTokens;
    },
    /** The pages and text of a PDF in base64. Returns undefined if it cannot be read in time. */
    async measureDocument(base64: string, signal: AbortSignal): Promise<PdfSize | undefined> {
      const document = { type: "application/pdf", base64 } as const;
      const [size] = (await count({ texts: [], documents: [document] }, signal))?.documents ?? [];
      return size && "pages" in size ? size : undefined;
    },
    secondsOf: (recording: Recording, signal: AbortSignal) => recordings.secondsOf(recording, signal),
    /** Ends the threads; estimates in progress fall back to bytes. */
    async close() {
      await Promise.all([thread.close(), recordings.close()]);
    },
  };
}
