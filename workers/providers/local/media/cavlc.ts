import type { BitWriter } from "./bits.ts";

interface Code {
  readonly value: number;
  readonly length: number;
}

/** Codes are written as in the tables: bits as a text of 0 and 1. */
const read = (table: readonly (readonly string[])[]): readonly (readonly Code[])[] =>
  table.map((row) => row.map((bits) => ({ value: Number.parseInt(bits, 2), length: bits.length })));
const write = (into: BitWriter, code: Code | undefined) => {
  if (code) into.bits(code.value, code.length);
};

/** By count of coefficients, then of trailing ones, where the neighbors have none (table 9-5, 0 <= nC < 2). */
const tokens = read([
  ["1"],
  ["000101", "01"],
  ["00000111", "000100", "001"],
  ["000000111", "00000110", "0000101", "00011"],
]);
/** The same for the DC of a chroma plane (nC = -1), of which only the first coefficient is used here. */
const chromaTokens = read([["01"], ["000111", "1"]]);
/** By count of coefficients from 1, then of zeros before the last of them (table 9-7). */
const zeroCodes = read([[], ["1", "011", "010"], ["111", "110"], ["0101"]]);
/** By zeros that are left, then by the zeros just before the coefficient (table 9-10). */
const runCodes = read([[], ["1", "0"], ["1", "01", "00"]]);

/** The first three coefficients of a block of 16, the rest being 0, in the order of the zigzag (9.2). */
export function writeLuma(into: BitWriter, coefficients: readonly [number, number, number]): void {
  const places = [2, 1, 0].filter((place) => coefficients[place] !== 0);
  const levels = places.map((place) => coefficients[place] as number);
  const ones = trailingOnes(levels);
  write(into, tokens[levels.length]?.[ones]);
  if (levels.length === 0) return;
  writeLevels(into, levels, ones);
  let zeros = (places[0] as number) + 1 - levels.length;
  write(into, zeroCodes[levels.length]?.[zeros]);
  for (let at = 0; at + 1 < places.length && zeros > 0; at++) {
    const run = (places[at] as number) - (places[at + 1] as number) - 1;
    write(into, runCodes[zeros]?.[run]);
    zeros -= run;
  }
}

/** The first of four coefficients, the rest being 0. */
export function writeChroma(into: BitWriter, coefficient: number): void {
  const levels = coefficient === 0 ? [] : [coefficient];
  const ones = trailingOnes(levels);
  write(into, chromaTokens[levels.length]?.[ones]);
  if (levels.length === 0) return;
  writeLevels(into, levels, ones);
  into.bits(1, 1); // no zeros before it
}

function trailingOnes(levels: readonly number[]): number {
  const other = levels.findIndex((level) => Math.abs(level) !== 1);
  return other === -1 ? levels.length : other;
}

/** Levels from the last to the first (9.2.2.1). */
function writeLevels(into: BitWriter, levels: readonly number[], ones: number): void {
  let suffixBits = 0;
  for (const [at, level] of levels.entries()) {
    if (at < ones) {
      into.bits(level < 0 ? 1 : 0, 1);
      continue;
    }
    let code = level > 0 ? 2 * level - 2 : -2 * level - 1;
    // The first after fewer than three ones cannot be a one itself.
    if (at === ones && ones < 3) code -= 2;
    writeLevel(into, code, suffixBits);
    suffixBits ||= 1;
    if (Math.abs(level) > 3 << (suffixBits - 1)) suffixBits++;
  }
}

function writeLevel(into: BitWriter, code: number, suffixBits: number): void {
  const prefix = (zeros: number) => into.bits(1, zeros + 1);
  if (suffixBits === 0 && code >= 14) {
    prefix(code < 30 ? 14 : 15);
    if (code < 30) into.bits(code - 14, 4);
    else into.bits(code - 30, 12);
  } else if (code < 15 << suffixBits) {
    prefix(code >> suffixBits);
    if (suffixBits > 0) into.bits(code, suffixBits);
  } else {
    prefix(15);
    into.bits(code - (15 << suffixBits), 12);
  }
}
