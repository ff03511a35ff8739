import { inflateSync } from "node:zlib";

/** What a provider bills of a document: an image of each page, and for some the text on them. */
export interface PdfSize {
  readonly pages: number;
  readonly characters: number;
}

/** What may be spent on the documents of one prompt. */
export interface Budget {
  /** Of `performance.now()`. */
  readonly untilMs: number;
  inflatedBytes: number;
}

interface Found {
  readonly pages: Set<string>;
  count: number;
  characters: number;
}

const page = /\/Type\s*\/Page(?![A-Za-z])/g;
/** How far before its type a page's object may begin. */
const objectCharacters = 1_024;
const tree = /\/Type\s*\/Pages\b/;
/** More than any provider takes. */
const maxPages = 10_000;

function notePages(objects: string, where: string, found: Found): void {
  for (const { index } of objects.matchAll(page)) {
    if (found.pages.size >= maxPages) break;
    const before = objects.slice(Math.max(0, index - objectCharacters), index);
    const begins = before.lastIndexOf("obj");
    // A page that was changed is there again under the same number; those in object streams have none beside them.
    const [, id] = /(\d{1,10})\s+\d{1,5}\s+$/.exec(before.slice(Math.max(0, begins - 24), Math.max(0, begins))) ?? [];
    found.pages.add(id ?? `${where}:${index}`);
  }
  if (!tree.test(objects)) return;
  for (const { 1: count } of objects.matchAll(/\/Count\s+(\d{1,6})\b/g))
    found.count = Math.max(found.count, Math.min(maxPages, Number(count)));
}

const [open, close, less, more, escape] = ["(", ")", "<", ">", "\\"].map((sign) => sign.charCodeAt(0));

/** The end of the string that begins here, and the characters it shows. Fonts of many signs have two bytes to each. */
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

/** The strings that a page's content shows, read once from end to end: it may be made to hold up who looks back. */
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

/** Streams that show nothing: images, fonts, tables, and what describes the document. */
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

/** Of a document of which nothing could be read: text is compressed to a third or a quarter. */
const usualCharactersPerByte = 4;

/**
 * Reads what it can within the budget; of the rest it takes as much text for each byte as of what was read. Page
 * objects and the tree's own count may contradict each other: the larger counts.
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
