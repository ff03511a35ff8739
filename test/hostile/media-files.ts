import { deflateSync, gzipSync } from "node:zlib";
import { mp3, pdf, pngChunk, wav } from "../support/media-files.ts";
import { mebi } from "./input.ts";

/** Files that take a parser as long as possible. */
export interface HostileFile {
  readonly name: string;
  readonly mime: string;
  readonly isShort?: boolean;
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

export const hostileFiles: readonly HostileFile[] = [
  { name: "MP3 of 0xFF", mime: "audio/mpeg", isShort: true, make: () => repeated("\xff") },
  { name: "MP3 of short frames", mime: "audio/mpeg", make: () => mp3(1_200) },
  {
    name: "MP3, ID3 of many frames",
    mime: "audio/mpeg",
    make: () => after("ID3\x03\0\0\x09\x7f\x7f\x7f", repeated("TXXX\0\0\0\x01\0\0\0")),
  },
  { name: "MP3, ID3 in ID3", mime: "audio/mpeg", make: () => repeated("ID3\x04\0\0\0\0\0\0") },
  { name: "AAC of short frames", mime: "audio/aac", make: () => repeated("\xff\xf1\x50\x80\0\xff\xfc") },
  { name: "WAV", mime: "audio/wav", make: () => wav(600) },
  {
    name: "WAV of empty chunks",
    mime: "audio/wav",
    make: () => after("RIFF\xff\xff\xff\x7fWAVE", repeated("junk\0\0\0\0")),
  },
  {
    name: "WAV of LIST chunks",
    mime: "audio/wav",
    make: () => after("RIFF\xff\xff\xff\x7fWAVE", repeated("LIST\x04\0\0\0INFO")),
  },
  { name: "FLAC of empty blocks", mime: "audio/flac", make: () => after("fLaC", repeated("\x04\0\0\0")) },
  {
    name: "FLAC, a comment of many",
    mime: "audio/flac",
    make: () => after("fLaC\x04\xff\xff\xff\0\0\0\0\xff\xff\xff\0", repeated("\x03\0\0\0a=b")),
  },
  { name: "OGG of empty pages", mime: "audio/ogg", make: () => repeated(`OggS${"\0".repeat(22)}\x01\0`) },
  {
    name: "AIFF of empty chunks",
    mime: "audio/aiff",
    make: () => after("FORM\x7f\xff\xff\xffAIFF", repeated("ANNO\0\0\0\0")),
  },
  {
    name: "WebM of clusters without a size",
    mime: "audio/webm",
    isShort: true,
    make: () => after(`${ebml}\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff`, repeated("\x1f\x43\xb6\x75\x80")),
  },
  {
    name: "WebM of short blocks",
    mime: "audio/webm",
    make: () =>
      after(
        `${ebml}\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff\x1f\x43\xb6\x75\x01\xff\xff\xff\xff\xff\xff\xff`,
        repeated("\xa3\x84\x81\0\0\0"),
      ),
  },
  { name: "WebM of void elements", mime: "video/webm", make: () => after(ebml, repeated("\xec\x80")) },
  { name: "MP4 of empty boxes", mime: "video/mp4", make: () => Buffer.concat([ftyp, repeated("\0\0\0\x08free")]) },
  {
    name: "MP4, boxes in boxes",
    mime: "video/mp4",
    make: () =>
      Array.from({ length: 8_000 })
        .reduce<Buffer>((inner) => box("moov", inner), Buffer.concat([ftyp]))
        .subarray(0),
  },
  {
    name: "MP4, an index of a million samples",
    mime: "audio/mp4",
    make: () =>
      Buffer.concat([
        box("ftyp", latin1("M4A \0\0\0\0M4A ")),
        box(
          "moov",
          box(
            "trak",
            box(
              "mdia",
              box(
                "minf",
                box(
                  "stbl",
                  box(
                    "stsz",
                    Buffer.concat([uint32(0), uint32(0), uint32(4_000_000), repeated("\0\0\0\x01", 16_000_000)]),
                  ),
                ),
              ),
            ),
          ),
        ),
      ]),
  },
  {
    name: "ASF with objects of no size",
    mime: "video/x-ms-asf",
    make: () => after(`${asf}${"\0".repeat(14)}`, Buffer.alloc(bytes)),
  },
  {
    name: "AVI of empty chunks",
    mime: "video/x-msvideo",
    make: () => after("RIFF\xff\xff\xff\x7fAVI ", repeated("JUNK\0\0\0\0")),
  },
  {
    name: "PNG of empty chunks",
    mime: "image/png",
    make: () =>
      Buffer.concat([latin1(png), pngChunk("IHDR", header(1, 1)), repeated(pngChunk("tEXt", Buffer.alloc(0)))]),
  },
  {
    name: "PNG of 16 megapixels",
    mime: "image/png",
    isShort: true,
    make: () =>
      Buffer.concat([
        latin1(png),
        pngChunk("IHDR", header(4_000, 4_000)),
        pngChunk("IDAT", deflateSync(Buffer.alloc(12_001 * 4_000))),
        pngChunk("IEND", Buffer.alloc(0)),
      ]),
  },
  {
    name: "PNG that inflates to 1 GB",
    mime: "image/png",
    make: () =>
      Buffer.concat([
        latin1(png),
        pngChunk("IHDR", header(64, 64)),
        pngChunk("IDAT", deflateSync(Buffer.alloc(1024 * mebi))),
        pngChunk("IEND", Buffer.alloc(0)),
      ]),
  },
  { name: "JPEG of empty segments", mime: "image/jpeg", make: () => after("\xff\xd8", repeated("\xff\xe0\0\0")) },
  { name: "JPEG of short segments", mime: "image/jpeg", make: () => after("\xff\xd8", repeated("\xff\xe1\0\x02")) },
  {
    name: "GIF of empty blocks",
    mime: "image/gif",
    make: () => after("GIF89a\xff\xff\xff\xff\0\0\0", repeated("\x21\xf9\0")),
  },
  {
    name: "WebP of empty chunks",
    mime: "image/webp",
    make: () =>
      after("RIFF\xff\xff\xff\x7fWEBPVP8X\x0a\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff", repeated("EXIF\0\0\0\0")),
  },
  {
    name: "TIFF, a directory of itself",
    mime: "image/tiff",
    make: () => after("II*\0\x08\0\0\0", repeated("\x01\0\0\x01\x04\0\x01\0\0\0\x08\0\0\0\x08\0\0\0")),
  },
  {
    name: "HEIC of empty boxes",
    mime: "image/heic",
    make: () => Buffer.concat([box("ftyp", latin1("heic\0\0\0\0mif1")), repeated("\0\0\0\x08meta")]),
  },
  { name: "ZIP of empty entries", mime: "application/zip", make: () => repeated(zipEntry) },
  { name: "gzip of zeros", mime: "application/gzip", make: () => gzipSync(Buffer.alloc(1024 * mebi)) },
  {
    name: "PDF of many pages",
    mime: "application/pdf",
    isShort: true,
    make: () => latin1(`%PDF-1.5\n${pages(500_000)}`),
  },
  {
    name: "PDF of empty streams",
    mime: "application/pdf",
    make: () => after("%PDF-1.5\n", repeated("1 0 obj<<>>stream\nendstream endobj\n")),
  },
  {
    name: "PDF of open strings",
    mime: "application/pdf",
    make: () =>
      Buffer.concat([latin1("%PDF-1.5\n1 0 obj<<>>stream\nBT Tj "), repeated("("), latin1("\nendstream endobj\n")]),
  },
  {
    name: "PDF of blanks before pages",
    mime: "application/pdf",
    make: () => after("%PDF-1.5\n", repeated("/Type                 ")),
  },
  {
    name: "PDF that inflates to 1 GB",
    mime: "application/pdf",
    make: () => pdf(Array.from({ length: 8 }, () => "a".repeat(8 * mebi))),
  },
  { name: "text", mime: "text/plain", make: () => repeated("ab ") },
  { name: "text of one word", mime: "text/plain", make: () => repeated("a") },
  { name: "SVG", mime: "image/svg+xml", make: () => after("<?xml version='1.0'?>", repeated("<svg ")) },
];
