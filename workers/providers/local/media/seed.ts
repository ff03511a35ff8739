import { createHash } from "node:crypto";

/** The same for the same parts, in 32 bits. */
export function seedOf(...parts: readonly (string | Buffer)[]): number {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(`${part.length} `).update(part);
  return hash.digest().readUInt32BE(0);
}

/** From 0 to below 1, evenly: mulberry32. */
export function numbersFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
