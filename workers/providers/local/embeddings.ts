import { setImmediate } from "node:timers/promises";
import { z } from "zod";
import type { JsonObject } from "../provider.ts";
import { parseRequest } from "./request.ts";
import { countTokens } from "./tokens.ts";

const defaultDimensions = 256;
/** What counts of one input at most, as the catalog says. */
const contextTokens = 8_192;

const request = z.object({
  model: z.string(),
  input: z.union([z.string(), z.array(z.string())]),
  encoding_format: z.enum(["float", "base64"]).nullish(),
  dimensions: z.int().min(1).max(3072).nullish(),
});

/** Texts that share words and trigrams of letters point the same way; vectors have length 1. */
export async function embed(body: JsonObject, signal: AbortSignal): Promise<JsonObject> {
  const { model, input, encoding_format, dimensions } = parseRequest(request, body);
  const inputs = typeof input === "string" ? [input] : input;
  const data: JsonObject[] = [];
  for (const [index, text] of inputs.entries()) {
    if (index > 0) await setImmediate();
    const vector = await vectorOf(text, dimensions ?? defaultDimensions);
    signal.throwIfAborted();
    const embedding = encoding_format === "base64" ? Buffer.from(vector.buffer).toString("base64") : Array.from(vector);
    data.push({ object: "embedding", index, embedding });
  }
  let tokens = 0;
  for (const text of inputs) tokens += Math.min(contextTokens, await countTokens([text]));
  return { object: "list", data, model, usage: { prompt_tokens: tokens, total_tokens: tokens } };
}

const turnCharacters = 128 * 1024;

/** Feature hashing (Weinberger et al., 2009) of words and of the trigrams of "_word_": a number and a sign for each. */
async function vectorOf(text: string, dimensions: number): Promise<Float32Array<ArrayBuffer>> {
  const sums = new Float64Array(dimensions);
  const add = (hash: number, weight: number) => {
    const mixed = mix(hash);
    const at = (mixed >>> 1) % dimensions;
    sums[at] = (sums[at] as number) + (mixed & 1 ? weight : -weight);
  };
  let word = 0;
  let beforeLast = boundary;
  let last = boundary;
  for (let start = 0; start < text.length; start += turnCharacters) {
    if (start > 0) await setImmediate();
    const part = text.slice(start, start + turnCharacters).toLowerCase();
    for (let at = 0; at < part.length; at++) {
      const code = part.charCodeAt(at);
      if (isWordCharacter(code)) {
        word = step(word, code);
        add(step(step(beforeLast, last), code), 1);
        beforeLast = last;
        last = code;
      } else if (last !== boundary) {
        add(step(step(beforeLast, last), boundary), 1);
        add(word, 2);
        word = 0;
        beforeLast = last = boundary;
      }
    }
  }
  if (last !== boundary) {
    add(step(step(beforeLast, last), boundary), 1);
    add(word, 2);
  }
  let length = Math.sqrt(sums.reduce((total, sum) => total + sum * sum, 0));
  if (length === 0) {
    // No word at all, or hashes that cancelled each other out: still a vector, the same for the same text.
    let hash = 1;
    for (let at = 0; at < Math.min(text.length, 1024); at++) hash = step(hash, text.charCodeAt(at));
    add(hash, 1);
    length = 1;
  }
  return Float32Array.from(sums, (sum) => sum / length);
}

const boundary = 95;
const step = (hash: number, code: number) => (Math.imul(hash ^ code, 0x01000193) + code) | 0;

/** The last round of MurmurHash3: every bit of the input reaches every bit of the result. */
function mix(hash: number): number {
  let mixed = hash;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** Letters and digits of ASCII, and everything beyond it but punctuation and blanks of the common blocks. */
const isWordCharacter = (code: number) =>
  (code >= 97 && code <= 122) ||
  (code >= 48 && code <= 57) ||
  (code >= 0xc0 && !(code >= 0x2000 && code <= 0x206f) && !(code >= 0x3000 && code <= 0x303f));
