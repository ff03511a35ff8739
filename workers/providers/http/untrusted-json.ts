import { randomUUID } from "node:crypto";
import { createJsonScan, type FieldList, jsonLimits, unlimitedJson } from "#formats";
import { isDeeper, isObject } from "#json";
import { nextTurnIfLarge } from "#platform/concurrency/next-turn";
import { refusal, UpstreamFailure } from "../provider.ts";
import { textOf } from "./blocks.ts";

/** JSON.parse accepts any depth; JSON.stringify and other recursive code do not. */
const maxDepth = 512;

/** Bound the time for which one answer blocks the event loop. */
const answerLimits = { ...unlimitedJson, values: 250_000, names: 100_000, escapes: jsonLimits.escapes, levels: 128 };
/** The values of an answer with vectors: each has a value for each number. */
export const vectorValues = 1_000_000;
/** A shorter text cannot exceed the limits. */
const scannedBytes = 250_000;
/** About 3 ms of scanning or parsing. */
const pieceBytes = 256 * 1024;

// The text may quote a prompt, so it does not go into the error.
const unreadable = () =>
  new UpstreamFailure("unavailable", "the answer is not a JSON object, nested too deep, or too large");

export function parseAnswer(text: string): Record<string, unknown> {
  if (text.length > scannedBytes) for (const _ of scanned([Buffer.from(text)]));
  return parseScanned(text);
}

/** Yields after each piece that it has scanned. Throws once what they would become is too large. */
function* scanned(blocks: readonly Buffer[], values = answerLimits.values, lists?: FieldList[]): Generator<void> {
  const scan = createJsonScan({ ...answerLimits, values }, lists);
  for (const block of blocks)
    for (let at = 0; at < block.length; at += pieceBytes) {
      try {
        scan.push(block.subarray(at, at + pieceBytes));
      } catch {
        throw unreadable();
      }
      yield;
    }
}

function parseScanned(text: string): Record<string, unknown> {
  try {
    const whole: unknown = JSON.parse(text);
    // Google wraps errors of streams in a list.
    const value = Array.isArray(whole) && isObject(whole[0]) && whole[0]["error"] != null ? whole[0] : whole;
    // Each level takes at least two characters, so short texts, like most events, need no check.
    if (isObject(value) && (text.length <= 2 * maxDepth || !isDeeper(value, maxDepth))) return value;
  } catch {}
  throw unreadable();
}

/** Parses the elements of a list, each piece of them in a turn of the event loop. */
async function parseList(
  blocks: readonly Buffer[],
  { start, commas }: FieldList,
  end: number,
): Promise<readonly unknown[]> {
  const elements: unknown[] = [];
  let from = start;
  for (const to of [...commas, end]) {
    if (to - from < pieceBytes && to !== end) continue;
    await nextTurnIfLarge(end - start);
    // A name keeps the parser from accepting a list that is no object.
    const piece = parseScanned(`{"list":[${textOf(blocks, from, to)}]}`)["list"] as unknown[];
    if (piece.length === 0) throw unreadable();
    for (const element of piece) elements.push(element);
    from = to + 1;
  }
  return elements;
}

/** Like `parseAnswer` for the bytes of all blocks, with each piece of a large text in a turn of the event loop. */
export async function parseLargeAnswer(
  blocks: readonly Buffer[],
  maxValues?: number,
): Promise<Record<string, unknown>> {
  const length = blocks.reduce((sum, block) => sum + block.length, 0);
  if (length <= scannedBytes) return parseScanned(textOf(blocks));
  const found: FieldList[] = [];
  for (const _ of scanned(blocks, maxValues, found)) await nextTurnIfLarge(length);
  const marker = randomUUID();
  const lists: (readonly unknown[])[] = [];
  let rest = "";
  let from = 0;
  for (const list of found) {
    const { start, end } = list;
    if (end === undefined || end - start < pieceBytes) continue;
    rest += `${textOf(blocks, from, start - 1)}"${marker}${lists.length}"`;
    lists.push(await parseList(blocks, list, end));
    from = end + 1;
  }
  rest += textOf(blocks, from);
  await nextTurnIfLarge(rest.length);
  const parsed = parseScanned(rest);
  await nextTurnIfLarge(rest.length);
  if (lists.length === 0) return parsed;
  const listOf = (value: unknown) =>
    typeof value === "string" && value.startsWith(marker) ? lists[Number(value.slice(marker.length))] : value;
  return Object.fromEntries(Object.entries(parsed).map(([field, value]) => [field, listOf(value)]));
}

export function writeRequest(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw refusal("The request is nested too deep.");
  }
}

const maxInputDepth = 64;

/** The fields and items at any depth of an input; `param` names each for errors, like `input.images[0].url`. */
export function* fieldsIn(
  value: unknown,
  param: string,
  depth = 0,
): Generator<{ readonly field: string; readonly param: string; readonly value: unknown }> {
  if (typeof value !== "object" || value === null) return;
  if (depth === maxInputDepth) throw refusal(`${param}: is nested too deep.`, param);
  for (const [field, each] of Object.entries(value)) {
    const at = Array.isArray(value) ? `${param}[${field}]` : param ? `${param}.${field}` : field;
    yield { field, param: at, value: each };
    yield* fieldsIn(each, at, depth + 1);
  }
}

/** Files that are stored at the provider under the operator's key may be another tenant's. */
export const providerFileRefusal = (name: string, param: string): UpstreamFailure =>
  refusal(`${name}: the provider's own store cannot be used; upload the file.`, param);
