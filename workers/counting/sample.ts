import { setImmediate } from "node:timers/promises";
import type { Document } from "./media.ts";
import type { Piece } from "./prompt.ts";

/** Some texts, and the UTF-8 bytes of them all. */
export interface Texts {
  readonly texts: readonly string[];
  readonly bytes: number;
}

/** Tokenized in 25 ms (code) to 110 ms (one emoji); on a busy machine five times that. */
const maxSampleBytes = 128 * 1024;
/** The fixed cost of sending a text to the thread, as bytes. */
const overheadBytes = 32;
const windowCharacters = 4 * 1024;
/** Longer texts are measured in parts. */
const maxPartCharacters = 128 * 1024;
/** Processed in about a millisecond; then the event loop gets a turn. */
const turnBytes = 256 * 1024;

/** Whether the event loop is due for a turn, after so many more bytes. */
function createTurns(): (bytes: number) => boolean {
  let sinceTurn = 0;
  return (bytes) => {
    sinceTurn = sinceTurn < turnBytes ? sinceTurn + bytes : bytes;
    return sinceTurn >= turnBytes;
  };
}

function* split(text: string, characters: number): Generator<string> {
  for (let at = 0; at < text.length; at += characters) yield text.slice(at, at + characters);
}

interface Gathered extends Texts {
  /** Tokens that are known without the tokenizer. */
  readonly allowance: number;
  readonly documents: readonly Document[];
}

/** Sorts the pieces of a prompt, and measures its texts. */
export async function gather(prompt: Iterable<Piece>): Promise<Gathered> {
  const isTurnDue = createTurns();
  const texts: string[] = [];
  const documents: Document[] = [];
  let [bytes, allowance] = [0, 0];
  for (const piece of prompt) {
    if (typeof piece === "number") allowance += piece;
    else if (typeof piece === "object") documents.push(piece);
    else
      for (const part of split(piece, maxPartCharacters)) {
        const length = Buffer.byteLength(part);
        texts.push(part);
        bytes += length;
        if (isTurnDue(length)) await setImmediate();
      }
    if (isTurnDue(overheadBytes)) await setImmediate();
  }
  return { texts, bytes, allowance, documents };
}

/**
 * All of the texts, or windows spread over them as evenly as the limit allows: how a prompt begins does not tell how the
 * rest of it is written.
 */
export async function sampleOf(all: Texts): Promise<Texts> {
  const share = maxSampleBytes / (all.bytes + overheadBytes * all.texts.length);
  if (share >= 1) return all;
  const isTurnDue = createTurns();
  const texts: string[] = [];
  let [bytes, taken, seen] = [0, 0, 0];
  for (const text of all.texts)
    for (const window of split(text, windowCharacters)) {
      const length = Buffer.byteLength(window);
      if (taken <= seen * share) {
        texts.push(window);
        bytes += length;
        taken += length + overheadBytes;
      }
      seen += length + overheadBytes;
      if (isTurnDue(length + overheadBytes)) await setImmediate();
    }
  return { texts, bytes };
}
