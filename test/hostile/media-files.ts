import { deflateSync, gzipSync } from "node:zlib";
import { mp3, pdf, pngChunk, wav } from "../support/media-files.ts";
import { mebi } from "./input.ts";

/** Files that take a parser as long as possible. */
export interface HostileFile {
  readonly name: string;
  readonly mime: string;
  readonly isShort: boolean;
  readonly make: () => Buffer;
}

/** A form with a recording has at most 25 MB. */
const bytes = 20 * mebi;
const latin1 = (text: string) => Buffer.from(text, "latin1");
const after = (head: string | Buffer, rest: Buffer) =>
  Buffer.concat([typeof head === "string" ? latin1(head) : head, rest]);
/** Repeats the unit. */
const repeated = (unit: string | Buffer, length = bytes) => Buffer.alloc(length, unit as string, "latin1");

const uint32 = (value: number) => {
  const four = Buffer.alloc(4);
  four.writeUInt32BE(value);
  return four;
};
const box = (type: string, content: Buffer, length = content.length + 8) =>
  Buffer.concat([uint32(length), latin1(type), content]);
const ftyp = box("ftyp", latin1("isom\0\0\0\0isom"));
const ebml =
  "\x1a\x45\xdf\xa3\x9fB\x86\x81\x01B\xf7\x81\x01B\xf2\x81\x04B\xf3\x81\x08B\x82\x84webmB\x87\x81\x04B\x85\x81\x02";
const png = "\x89PNG\r\n\x1a\n";
const header = (width: number, height: number) =>
  Buffer.concat([uint32(width), uint32(height), latin1("\x08\x02\0\0\0")]);
const asf = "\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\0\xaa\0\x62\xce\x6c";
const zipEntry = "PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0a";
const pages = (count: number) => Array.from({ length: count }, (_, at) => `${at} 0 obj<</Type/Page>>endobj\n`).join("");

type Row = readonly [name: string, make: () => Buffer, isShort?: true];
const filesOf = (mime: string, ...rows: readonly Row[]): HostileFile[] =>
  rows.map(([name, make, isShort]) => ({ name, mime, make, isShort: isShort === true }));

export const hostileFiles: readonly HostileFile[] = [
  ...filesOf(
    "audio/mpeg",
    ["MP3 of 0xFF", () => repeated("\xff"), true],
    ["MP3 of short frames", () => mp3(1_200)],
    ["MP3, ID3 of many frames", () => after("ID3\x03\0\0\x09\x7f\x7f\x7f", repeated("TXXX\0\0\0\x01\0\0\0"))],
    ["MP3, ID3 in ID3", () => repeated("ID3\x04\0\0\0\0\0\0")],
  ),
  ...filesOf("audio/aac", ["AAC of short frames", () => repeated("\xff\xf1\x50\x80\0\xff\xfc")]),
  ...filesOf(
    "audio/wav",
    ["WAV", () => wav(600)],
    ["WAV of empty chunks", () => after("RIFF\xff\xff\xff\x7fWAVE", repeated("junk\0\0\0\0"))],
    ["WAV of LIST chunks", () => after("RIFF\xff\xff\xff\x7fWAVE", repeated("LIST\x04\0\0\0INFO"))],
  ),
  ...filesOf(
    "audio/flac",
    ["FLAC of empty blocks", () => after("fLaC", repeated("\x04\0\0\0"))],
    ["FLAC, a comment of many", () => after("fLaC\x04\xff\xff\xff\0\0\0\0\xff\xff\xff\0", repeated("\x03\0\0\0a=b"))],
  ),
  ...filesOf("audio/ogg", ["OGG of empty pages", () => repeated(`OggS${"\0".repeat(22)}\x01\0`)]),
  ...filesOf("audio/aiff", ["AIFF of empty chunks", () => after("FORM\x7f\xff\xff\xffAIFF", repeated("ANNO\0\0\0\0"))]),
  ...filesOf(
    "audio/webm",
    [
      "WebM of clusters without a size",
      () => after(`${ebml}\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff`, repeated("\x1f\x43\xb6\x75\x80")),
      true,
    ],
    [
      "WebM of short blocks",
      () =>
        after(
          `${ebml}\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff\x1f\x43\xb6\x75\x01\xff\xff\xff\xff\xff\xff\xff`,
          repeated("\xa3\x84\x81\0\0\0"),
        ),
    ],
  ),
  ...filesOf("video/webm", ["WebM of void elements", () => after(ebml, repeated("\xec\x80"))]),
  ...filesOf(
    "video/mp4",
    ["MP4 of empty boxes", () => Buffer.concat([ftyp, repeated("\0\0\0\x08free")])],
    [
      "MP4, boxes in boxes",
      () =>
        Array.from({ length: 8_000 })
          .reduce<Buffer>((inner) => box("moov", inner), Buffer.concat([ftyp]))
          .subarray(0),
    ],
  ),
  ...filesOf("audio/mp4", [
    "MP4, an index of a million samples",
    () => {
      const sizes = Buffer.concat([uint32(0), uint32(0), uint32(4_000_000), repeated("\0\0\0\x01", 16_000_000)]);
      const path = ["moov", "trak", "mdia", "minf", "stbl"];
      const index = path.reduceRight((inner, type) => box(type, inner), box("stsz", sizes));
      return Buffer.concat([box("ftyp", latin1("M4A \0\0\0\0M4A ")), index]);
    },
  ]),
  ...filesOf("video/x-ms-asf", [
    "ASF with objects of no size",
    () => after(`${asf}${"\0".repeat(14)}`, Buffer.alloc(bytes)),
  ]),
  ...filesOf("video/x-msvideo", [
    "AVI of empty chunks",
    () => after("RIFF\xff\xff\xff\x7fAVI ", repeated("JUNK\0\0\0\0")),
  ]),
  ...filesOf(
    "image/png",
    [
      "PNG of empty chunks",
      () => Buffer.concat([latin1(png), pngChunk("IHDR", header(1, 1)), repeated(pngChunk("tEXt", Buffer.alloc(0)))]),
    ],
    [
      "PNG of 16 megapixels",
      () =>
        Buffer.concat([
          latin1(png),
          pngChunk("IHDR", header(4_000, 4_000)),
          pngChunk("IDAT", deflateSync(Buffer.alloc(12_001 * 4_000))),
          pngChunk("IEND", Buffer.alloc(0)),
        ]),
      true,
    ],
    [
      "PNG that inflates to 1 GB",
      () =>
        Buffer.concat([
          latin1(png),
          pngChunk("IHDR", header(64, 64)),
          pngChunk("IDAT", deflateSync(Buffer.alloc(1024 * mebi))),
          pngChunk("IEND", Buffer.alloc(0)),
        ]),
    ],
  ),
  ...filesOf(
    "image/jpeg",
    ["JPEG of empty segments", () => after("\xff\xd8", repeated("\xff\xe0\0\0"))],
    ["JPEG of short segments", () => after("\xff\xd8", repeated("\xff\xe1\0\x02"))],
  ),
  ...filesOf("image/gif", ["GIF of empty blocks", () => after("GIF89a\xff\xff\xff\xff\0\0\0", repeated("\x21\xf9\0"))]),
  ...filesOf("image/webp", [
    "WebP of empty chunks",
    () => after("RIFF\xff\xff\xff\x7fWEBPVP8X\x0a\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff", repeated("EXIF\0\0\0\0")),
  ]),
  ...filesOf("image/tiff", [
    "TIFF, a directory of itself",
    () => after("II*\0\x08\0\0\0", repeated("\x01\0\0\x01\x04\0\x01\0\0\0\x08\0\0\0\x08\0\0\0")),
  ]),
  ...filesOf("image/heic", [
    "HEIC of empty boxes",
    () => Buffer.concat([box("ftyp", latin1("heic\0\0\0\0mif1")), repeated("\0\0\0\x08meta")]),
  ]),
  ...filesOf("application/zip", ["ZIP of empty entries", () => repeated(zipEntry)]),
  ...filesOf("application/gzip", ["gzip of zeros", () => gzipSync(Buffer.alloc(1024 * mebi))]),
  ...filesOf(
    "application/pdf",
    ["PDF of many pages", () => latin1(`%PDF-1.5\n${pages(500_000)}`), true],
    ["PDF of empty streams", () => after("%PDF-1.5\n", repeated("1 0 obj<<>>stream\nendstream endobj\n"))],
    [
      "PDF of open strings",
      () =>
        Buffer.concat([latin1("%PDF-1.5\n1 0 obj<<>>stream\nBT Tj "), repeated("("), latin1("\nendstream endobj\n")]),
    ],
    ["PDF of blanks before pages", () => after("%PDF-1.5\n", repeated("/Type                 "))],
    ["PDF that inflates to 1 GB", () => pdf(Array.from({ length: 8 }, () => "a".repeat(8 * mebi)))],
  ),
  ...filesOf("text/plain", ["text", () => repeated("ab ")], ["text of one word", () => repeated("a")]),
  ...filesOf("image/svg+xml", ["SVG", () => after("<?xml version='1.0'?>", repeated("<svg "))]),
];
