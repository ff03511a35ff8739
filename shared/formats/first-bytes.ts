import type { Content } from "./types.ts";

/** As many characters of base64 as are looked at: the mark of a PDF may stand anywhere in its first kilobyte. */
const headCharacters = 1_368;

const imageBrands = /^(avif|avis|heic|heix|heim|heis|hevc|hevx|mif1|msf1)$/;
const soundBrands = /^(M4A |M4B |M4P )$/;

/** Files whose first box says by its brand what the others are. */
function ofBoxes(head: Buffer): Content {
  const brand = head.toString("latin1", 8, 12);
  if (imageBrands.test(brand)) return "image";
  return soundBrands.test(brand) ? "audio" : "video";
}

function ofRiff(head: Buffer): Content | undefined {
  switch (head.toString("latin1", 8, 12)) {
    case "WEBP":
      return "image";
    case "WAVE":
      return "audio";
    case "AVI ":
      return "video";
    default:
      return undefined;
  }
}

/** The frame of MPEG audio, layers 2 and 3, or of AAC: eleven set bits, and a version and a layer that there are. */
function beginsFrame(head: Buffer): boolean {
  const [first = 0, second = 0, third = 0] = head;
  if (first !== 0xff || (second & 0xe0) !== 0xe0 || (second & 0x18) === 0x08) return false;
  const layer = (second >> 1) & 3;
  if (layer === 0) return (second & 0xf0) === 0xf0;
  return layer !== 3 && (third & 0xf0) !== 0xf0 && (third & 0x0c) !== 0x0c;
}

const marks: readonly (readonly [mark: string, content: Content])[] = [
  ["\x89PNG\r\n\x1a\n", "image"],
  ["\xff\xd8\xff", "image"],
  ["GIF87a", "image"],
  ["GIF89a", "image"],
  ["II*\0", "image"],
  ["MM\0*", "image"],
  ["ID3", "audio"],
  ["fLaC", "audio"],
  ["OggS", "audio"],
  ["#!AMR", "audio"],
  ["\x1aE\xdf\xa3", "video"],
  ["\0\0\x01\xba", "video"],
  ["\0\0\x01\xb3", "video"],
  ["FLV\x01", "video"],
  ["PK\x03\x04", "other"],
];

/** What a file is by its first bytes; undefined for text, and for all that has no mark. */
export function contentOf(head: Buffer): Content | undefined {
  const beginning = head.toString("latin1", 0, 16);
  for (const [mark, content] of marks) if (beginning.startsWith(mark)) return content;
  if (beginning.startsWith("RIFF")) return ofRiff(head);
  if (beginning.slice(4, 8) === "ftyp") return ofBoxes(head);
  if (/^FORM[^]{4}AIF[FC]/.test(beginning)) return "audio";
  // A bitmap's reserved bytes tell it from a text that begins so.
  if (/^BM[^]{4}\0\0\0\0/.test(beginning)) return "image";
  if (/^(\xef\xbb\xbf)?\s*%PDF-/.test(beginning)) return "pdf";
  return beginsFrame(head) ? "audio" : undefined;
}

export const headOf = (base64: string): Buffer => Buffer.from(base64.slice(0, headCharacters), "base64");

/** A frame of MPEG audio has no fewer: 8 kbit/s. */
const mp3BytesPerSecond = 1_000;

/** `fmt ` of a WAV that is not compressed: plain, floating point, or of more than two channels. */
function wavSeconds(head: Buffer, bytes: number): number | undefined {
  const at = head.indexOf("fmt ") + 8;
  if (at < 8 || at + 16 > head.length || ![1, 3, 0xfffe].includes(head.readUInt16LE(at))) return undefined;
  const bytesPerSecond = (head.readUInt32LE(at + 4) * head.readUInt16LE(at + 2) * head.readUInt16LE(at + 14)) / 8;
  return bytesPerSecond > 0 ? bytes / bytesPerSecond : undefined;
}

/** Silence takes next to no bytes, but the length stands in the file's first block. */
function flacSeconds(head: Buffer): number | undefined {
  if (head.length < 26) return undefined;
  const rate = head.readUIntBE(18, 3) >> 4;
  const samples = (head.readUInt8(21) & 0x0f) * 2 ** 32 + head.readUInt32BE(22);
  return rate > 0 && samples > 0 ? samples / rate : undefined;
}

/** The most that a recording of so many bytes lasts, where its first bytes say it. */
export function mostSeconds(head: Buffer, bytes: number): number | undefined {
  const mark = head.toString("latin1", 0, 4);
  if (mark === "RIFF") return wavSeconds(head, bytes);
  if (mark === "fLaC") return flacSeconds(head) ?? Number.POSITIVE_INFINITY;
  const isMp3 = mark.startsWith("ID3") || (beginsFrame(head) && (((head[1] ?? 0) >> 1) & 3) !== 0);
  return isMp3 ? bytes / mp3BytesPerSecond : undefined;
}
