/**
 * How many tokens a prompt has, where its provider cannot be asked: for the Messages interface's `count_tokens` and Gemini's
 * `:countTokens`. An estimate, in tokens: text by OpenAI's o200k_base, templates and media by the rules in prompt.ts and
 * media.ts. It is exact for plain text to OpenAI's models since GPT-4o; other providers' tokenizers differ by 5 to 20 % in
 * English, by more in code and other scripts.
 *
 * Media are counted by the rules that the owner of the model publishes, where it is named, within 15 % for images whose
 * size can be read, WAV and MP3, and PDFs whose pages and text can be (deflated or plain, not encrypted); a link counts as
 * the usual file. Without an owner media count by a rule between them all, which may be off by five times.
 *
 * Text is tokenized and documents are read in a thread of their own: the event loop is never held up. Of more than 128 KB a
 * sample is tokenized and the count of all is worked out from it. Where the thread does not answer in time, or too many wait
 * for it, bytes are divided by four, and documents counted by their bytes. Throws the signal's reason when it is aborted, and
 * `invalidValue` for JSON that is nested too deep.
 */
import { setImmediate } from "node:timers/promises";
import { estimateTokens, type JsonObject } from "#formats";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { Document } from "./media.ts";
import { type Piece, promptOf } from "./prompt.ts";
import { createTokenizer } from "./tokenizer.ts";

export type Counting = ReturnType<typeof createCounting>;

export function createCounting(deps: { clock: Clock; log: Logger }) {
  const tokenizer = createTokenizer(deps);
  return {
    /** Of a request for chat completions, as it came or was converted. `owner`: whose model it is for (`Model.ownedBy`). */
    async estimate(request: JsonObject, signal: AbortSignal, owner?: string): Promise<number> {
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
    /** Ends the thread; estimates under way are answered by their bytes. */
    close: () => tokenizer.close(),
  };
}

/** So much is tokenized, in 25 ms (code) to 110 ms (one emoji); on a busy machine five times that. */
const sampleBytes = 128 * 1024;
/** What a text takes on its way to the thread whatever its length, as bytes. */
const textBytes = 32;
const windowCharacters = 4 * 1024;
/** Longer texts are measured in parts. */
const partCharacters = 128 * 1024;
/** Measured in about a millisecond; then the event loop gets a turn. */
const turnCharacters = 256 * 1024;
/** Reading the header of a recording takes as long. */
const audioCharacters = 32 * 1024;

function* inParts<T>(pieces: Iterable<T>, characters: number): Generator<T | string> {
  for (const each of pieces)
    if (typeof each !== "string") yield each;
    else for (let at = 0; at < each.length; at += characters) yield each.slice(at, at + characters);
}

async function* inTurns<T>(pieces: Iterable<T>): AsyncGenerator<Awaited<T>> {
  let sinceTurn = 0;
  for (const each of pieces) {
    yield await each;
    sinceTurn += textBytes;
    sinceTurn += typeof each === "string" ? each.length : each instanceof Promise ? audioCharacters : 0;
    if (sinceTurn < turnCharacters) continue;
    sinceTurn = 0;
    await setImmediate();
  }
}

/** The texts of the prompt with their UTF-8 bytes, its documents, and the tokens of all else by a rule. */
async function gather(prompt: Iterable<Piece>) {
  const texts: string[] = [];
  const documents: Document[] = [];
  let [bytes, allowance] = [0, 0];
  for await (const each of inTurns(inParts(prompt, partCharacters)))
    if (typeof each === "number") allowance += each;
    else if (typeof each === "object") documents.push(each);
    else {
      texts.push(each);
      bytes += Buffer.byteLength(each);
    }
  return { texts, bytes, allowance, documents };
}

/**
 * All of the texts, or windows from everywhere in them as evenly as the limit lets: how a prompt begins does not tell how
 * the rest of it is written.
 */
async function sampleOf(all: { readonly texts: readonly string[]; readonly bytes: number }) {
  const share = sampleBytes / (all.bytes + textBytes * all.texts.length);
  if (share >= 1) return all;
  const texts: string[] = [];
  let [bytes, taken, seen] = [0, 0, 0];
  for await (const window of inTurns(inParts(all.texts, windowCharacters))) {
    const length = Buffer.byteLength(window);
    if (taken <= seen * share) {
      texts.push(window);
      bytes += length;
      taken += length + textBytes;
    }
    seen += length + textBytes;
  }
  return { texts, bytes };
}
