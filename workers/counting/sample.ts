import { setImmediate } from "node:timers/promises";
import type { Document } from "./media.ts";
import type { Piece } from "./prompt.ts";

/** Some texts, and the UTF-8 bytes of them all. */
export interface Texts {
  readonly texts: readonly string[];
  readonly bytes: number;
}

/** So much is tokenized, in 25 ms (code) to 110 ms (one emoji); on a busy machine five times that. */
const limitBytes = 128 * 1024;
/** What a text takes on its way to the thread whatever its length, as bytes. */
const textBytes = 32;
const windowCharacters = 4 * 1024;
/** What is longer is measured in parts. */
const textCharacters = 128 * 1024;
/** Looked at in about a millisecond; then the event loop gets a turn. */
const turnBytes = 256 * 1024;

const weightOf = ({ texts, bytes }: Texts): number => bytes + textBytes * texts.length;

function* cut(text: string, characters: number): Generator<string> {
  for (let at = 0; at < text.length; at += characters) yield text.slice(at, at + characters);
}

function* inParts(prompt: Iterable<Piece>): Generator<Piece> {
  for (const each of prompt)
    if (typeof each !== "string" || each.length <= textCharacters) yield each;
    else yield* cut(each, textCharacters);
}

interface Gathered extends Texts {
  /** Tokens by a rule. */
  readonly allowance: number;
  readonly documents: readonly Document[];
}

/** The texts of the prompt, measured, and what else it has. */
export async function gather(prompt: Iterable<Piece>): Promise<Gathered> {
  const texts: string[] = [];
  const documents: Document[] = [];
  let [bytes, allowance, sinceTurn] = [0, 0, 0];
  for (const each of inParts(prompt)) {
    const length = typeof each === "string" ? Buffer.byteLength(each) : 0;
    if (typeof each === "number") allowance += each;
    else if (typeof each === "object") documents.push(each);
    else if (length > 0) texts.push(each);
    bytes += length;
    sinceTurn += length + textBytes;
    if (sinceTurn < turnBytes) continue;
    sinceTurn = 0;
    await setImmediate();
  }
  return { texts, bytes, allowance, documents };
}

function* windowsOf(texts: readonly string[]): Generator<string> {
  for (const text of texts) yield* cut(text, windowCharacters);
}

/**
 * All of the texts, or windows from everywhere in them as evenly as the limit lets: how a prompt begins does not tell how
 * the rest of it is written.
 */
export async function sampleOf(all: Texts): Promise<Texts> {
  const share = limitBytes / weightOf(all);
  if (share >= 1) return all;
  const texts: string[] = [];
  let [bytes, taken, seen, sinceTurn] = [0, 0, 0, 0];
  for (const window of windowsOf(all.texts)) {
    const length = Buffer.byteLength(window);
    if (taken <= seen * share) {
      texts.push(window);
      bytes += length;
      taken += length + textBytes;
    }
    seen += length + textBytes;
    sinceTurn += length + textBytes;
    if (sinceTurn < turnBytes) continue;
    sinceTurn = 0;
    await setImmediate();
  }
  return { texts, bytes };
}
