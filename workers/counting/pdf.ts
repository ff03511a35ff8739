import { inflateSync } from "node:zlib";

/** The parts of a document that providers bill: an image of each page and, for some providers, the text. */
export interface PdfSize {
  readonly pages: number;
  readonly characters: number;
}

/** Budget for reading the documents of one prompt. */
export interface Budget {
  /** A deadline on the clock of `performance.now()`. */
  readonly untilMs: number;
  inflatedBytes: number;
}

interface Found {
  readonly pages: Set<string>;
  count: number;
  characters: number;
}

const page = /\/Type\s*\/Page(?![A-Za-z])/g;
/** Maximum distance between the start of a page object and its type. */
const objectCharacters = 1_024;
const tree = /\/Type\s*\/Pages\b/;
/** More than any provider accepts. */
const maxPages = 10_000;

function notePages(objects: string, where: string, found: Found): void {
  for (const { index } of objects.matchAll(page)) {
    if (found.pages.size >= maxPages) break;
    const before = objects.slice(Math.max(0, index - objectCharacters), index);
    const begins = before.lastIndexOf("obj");
    // An updated page appears again under the same number. Pages in object streams have no number next to them.
    const [, id] = /(\d{1,10})\s+\d{1,5}\s+$/.exec(before.slice(Math.max(0, begins - 24), Math.max(0, begins))) ?? [];
    found.pages.add(id ?? `${where}:${index}`);
  }
  if (!tree.test(objects)) return;
  for (const { 1: count } of objects.matchAll(/\/Count\s+(\d{1,6})\b/g))
    found.count = Math.max(found.count, Math.min(maxPages, Number(count)));
}

const [open, close, less, more, escape] = ["(", ")", "<", ">", "\\"].map((sign) => sign.charCodeAt(0));

/**
 * The end of the string that begins here, and the characters that it shows. Large fonts use two bytes for each character.
 */
function readString(content: string, start: number): { end: number; characters: number } {
  const isHex = content.charCodeAt(start) === less;
  let [at, depth, zeros] = [start + 1, 1, 0];
  for (; at < content.length; at++) {
    const code = content.charCodeAt(at);
    if (isHex && code === more) break;
    if (isHex) continue;
    if (code === escape) at++;
    else if (code === open) depth++;
    else if (code === close && --depth === 0) break;
    else if (code === 0) zeros++;
  }
  const length = Math.min(at, content.length) - start - 1;
  if (isHex) return { end: at, characters: length / (length % 4 === 0 ? 4 : 2) };
  return { end: at, characters: zeros * 4 > length ? length / 2 : length };
}

/** Counts the characters that a page shows, in one pass: a hostile file could make backtracking quadratic. */
function noteText(content: string, found: Found): void {
  if (!content.includes("BT") || !/T[jJ]/.test(content)) return;
  for (let at = 0; at < content.length; at++) {
    const code = content.charCodeAt(at);
    if (code === less && content.charCodeAt(at + 1) === less) at++;
    else if (code === open || code === less) {
      const { end, characters } = readString(content, at);
      found.characters += characters;
      at = end;
    }
  }
}

/** Matches streams without visible text: images, fonts, tables, metadata. */
const silent =
  /\/Subtype\s*\/(?!Form)\w|\/Type\s*\/(?:XRef|Metadata|EmbeddedFile)|\/Length1\b|\/FunctionType|\/ShadingType/;

function inflated(data: Buffer, dictionary: string, budget: Budget): string | undefined {
  if (!/\/Filter/.test(dictionary)) return data.toString("latin1");
  if (!/\/(?:FlateDecode|Fl)\b/.test(dictionary) || budget.inflatedBytes <= 0) return undefined;
  try {
    const whole = inflateSync(data, { maxOutputLength: budget.inflatedBytes });
    budget.inflatedBytes -= whole.length;
    return whole.toString("latin1");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") budget.inflatedBytes = 0;
    return undefined;
  }
}

/** Used for a document that could not be read at all: text compresses to a third or a quarter. */
const usualCharactersPerByte = 4;

/**
 * Reads what it can within the budget and extrapolates the text of the rest from its bytes. If the page objects and the
 * count of the page tree contradict each other, the larger number counts.
 */
export function measurePdf(bytes: Buffer, budget: Budget): PdfSize {
  const whole = bytes.toString("latin1");
  const found: Found = { pages: new Set(), count: 0, characters: 0 };
  let [at, contentBytes, readBytes] = [0, 0, 0];
  for (;;) {
    const start = performance.now() > budget.untilMs ? -1 : whole.indexOf("stream", at);
    const end = start < 0 ? -1 : whole.indexOf("endstream", start);
    if (end < 0) break;
    const outside = whole.slice(at, start);
    notePages(outside, String(at), found);
    at = end + "endstream".length;
    const dictionary = outside.slice(Math.max(outside.lastIndexOf("obj"), outside.length - 4096));
    if (end === start || silent.test(dictionary)) continue;
    contentBytes += end - start;
    const from = start + "stream".length + (whole[start + "stream".length] === "\r" ? 2 : 1);
    const content = inflated(bytes.subarray(from, end), dictionary, budget);
    if (content === undefined) continue;
    readBytes += end - start;
    if (/\/Type\s*\/ObjStm/.test(dictionary)) notePages(content, `in ${at}`, found);
    else noteText(content, found);
  }
  const isRead = performance.now() <= budget.untilMs;
  if (isRead) notePages(whole.slice(at), String(at), found);
  else contentBytes += whole.length - at;
  const perByte = readBytes > 0 ? found.characters / readBytes : usualCharactersPerByte;
  const characters = Math.ceil(found.characters + (contentBytes - readBytes) * perByte);
  const pages = isRead ? found.pages.size : Math.ceil((found.pages.size * whole.length) / Math.max(1, at));
  return { pages: Math.min(maxPages, Math.max(pages, found.count)), characters };
}
