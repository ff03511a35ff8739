import { setImmediate } from "node:timers/promises";
import type { Document } from "./media.ts";
import type { Piece } from "./prompt.ts";

/**
 * Limit of the sample. Tokenizing it takes 25 ms (code) to 110 ms (one repeated emoji), and five times that on a busy
 * machine.
 */
const sampleBytes = 128 * 1024;
/** Fixed cost of passing a text to the thread, expressed in bytes. */
const textBytes = 32;
const windowCharacters = 4 * 1024;
/** Longer texts are measured in parts. */
const partCharacters = 128 * 1024;
/** Measured in about a millisecond; then the event loop gets a turn. */
const turnCharacters = 256 * 1024;

function* inParts<T>(pieces: Iterable<T>, characters: number): Generator<T | string> {
  for (const each of pieces)
    if (typeof each !== "string") yield each;
    else for (let at = 0; at < each.length; at += characters) yield each.slice(at, at + characters);
}

async function* inTurns<T>(pieces: Iterable<T>): AsyncGenerator<T> {
  let sinceTurn = 0;
  for (const each of pieces) {
    yield each;
    sinceTurn += textBytes + (typeof each === "string" ? each.length : 0);
    if (sinceTurn < turnCharacters) continue;
    sinceTurn = 0;
    await setImmediate();
  }
}

/**
 * Reads the texts of the prompt with their UTF-8 bytes, its documents, and the tokens of everything else, which follow fixed
 * rules.
 */
export async function readPrompt(prompt: Iterable<Piece>) {
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
 * All of the texts, or windows spread evenly across them within the limit: the start of a prompt does not represent the
 * rest.
 */
export async function sampleOf(all: { readonly texts: readonly string[]; readonly bytes: number }) {
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
