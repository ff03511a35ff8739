import { setImmediate } from "node:timers/promises";
import { z } from "zod";
import type { JsonObject } from "#json";
import { parseRequest } from "./request.ts";
import { countTokens } from "./tokens.ts";

const defaultDimensions = 256;
/** At most this many tokens of an input are counted; this is the context length in the catalog. */
const contextTokens = 8_192;

const request = z.object({
  model: z.string(),
  // The API has already checked that this is a text or its tokens, or several of either.
  input: z.custom<string | readonly number[] | readonly string[] | readonly (readonly number[])[]>(
    (value) => typeof value === "string" || Array.isArray(value),
    "must be a text or its tokens, or several of either",
  ),
  encoding_format: z.enum(["float", "base64"]).nullish(),
  dimensions: z.int().min(1).max(3072).nullish(),
});

/** A text, or its tokens, each of which is read as a word. */
type Input = string | readonly number[];

/** Texts that share words and trigrams of letters have similar vectors, all of length 1. */
export async function embed(body: JsonObject, signal: AbortSignal): Promise<JsonObject> {
  const { model, input, encoding_format, dimensions } = parseRequest(request, body);
  const inputs = typeof input === "string" || typeof input[0] === "number" ? [input as Input] : (input as Input[]);
  const data: JsonObject[] = [];
  for (const [index, one] of inputs.entries()) {
    if (index > 0) await setImmediate();
    const vector = await vectorOf(typeof one === "string" ? one : one.join(" "), dimensions ?? defaultDimensions);
    signal.throwIfAborted();
    const embedding = encoding_format === "base64" ? Buffer.from(vector.buffer).toString("base64") : Array.from(vector);
    data.push({ object: "embedding", index, embedding });
  }
  let tokens = 0;
  for (const one of inputs) {
    await setImmediate();
    tokens += Math.min(contextTokens, typeof one === "string" ? await countTokens([one]) : one.length);
  }
  return { object: "list", data, model, usage: { prompt_tokens: tokens, total_tokens: tokens } };
}

/** The event loop gets a turn after this many characters. */
const turnCharacters = 64 * 1024;

/** Feature hashing (Weinberger et al., 2009) of words and of the trigrams of "_word_". */
async function vectorOf(text: string, dimensions: number): Promise<Float32Array<ArrayBuffer>> {
  const sums = new Float64Array(dimensions);
  const add = (feature: string, weight: number) => {
    const hash = hashOf(feature);
    const at = (hash >>> 1) % dimensions;
    sums[at] = (sums[at] as number) + (hash & 1 ? weight : -weight);
  };
  let sinceTurn = 0;
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{M}\p{N}]{1,64}/gu)) {
    add(word, 2);
    const padded = `_${word}_`;
    for (let at = 0; at + 3 <= padded.length; at++) add(padded.slice(at, at + 3), 1);
    sinceTurn += padded.length;
    if (sinceTurn < turnCharacters) continue;
    sinceTurn = 0;
    await setImmediate();
  }
  // The text has no words, or the hashes canceled each other out.
  if (sums.every((sum) => sum === 0)) add(text.slice(0, 1024), 1);
  const length = Math.hypot(...sums);
  return Float32Array.from(sums, (sum) => sum / length);
}

/** FNV-1a with the last round of MurmurHash3, so that every bit of the input affects every bit of the result. */
function hashOf(feature: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < feature.length; at++) hash = Math.imul(hash ^ feature.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
