import { expect, test } from "vitest";
import { detect, mediaType } from "../../shared/files/media-types.ts";

const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : Buffer.from(part))));
const padded = (head: Buffer) => Buffer.concat([head, Buffer.alloc(5_000)]);
const ftyp = (brand: string) => bytes([0, 0, 0, 20], `ftyp${brand}`, [0, 0, 2, 0], brand);
const riff = (form: string) => bytes("RIFF", [0xff, 0, 0, 0], form);
const ogg = (packet: string) => bytes("OggS", [0, 2, ...Array<number>(20).fill(0), 1, 30], packet);
const ebml = (type: string, ...codecs: string[]) =>
  bytes(
    [0x1a, 0x45, 0xdf, 0xa3, 0x80 + type.length + 3, 0x42, 0x82, 0x80 + type.length],
    type,
    ...codecs.flatMap((codec) => [[0x86, 0x80 + codec.length], codec]),
  );
const box = (type: string, ...content: Buffer[]): Buffer => {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(8 + content.reduce((sum, each) => sum + each.length, 0));
  return Buffer.concat([size, Buffer.from(type), ...content]);
};
const track = (handler: string) => box("trak", box("mdia", box("hdlr", Buffer.alloc(8), Buffer.from(handler))));
const png = bytes(
  [0x89],
  "PNG",
  [13, 10, 26, 10, 0, 0, 0, 13],
  "IHDR",
  Array<number>(17).fill(1),
  [0, 0, 0, 1],
  "IDAT",
);

const files: Readonly<Record<string, [Buffer, string]>> = {
  png: [png, "image/png"],
  jpeg: [bytes([0xff, 0xd8, 0xff, 0xe0]), "image/jpeg"],
  gif: [bytes("GIF89a"), "image/gif"],
  webp: [riff("WEBPVP8 "), "image/webp"],
  avif: [ftyp("avif"), "image/avif"],
  heic: [ftyp("heic"), "image/heic"],
  bmp: [bytes("BM"), "image/bmp"],
  tiff: [bytes("II*", [0, 8, 0, 0, 0, 0, 0]), "image/tiff"],
  mp4: [ftyp("isom"), "video/mp4"],
  m4v: [ftyp("M4V "), "video/mp4"],
  mov: [ftyp("qt  "), "video/quicktime"],
  "3gp": [ftyp("3gp4"), "video/3gpp"],
  webm: [ebml("webm", "V_VP9", "A_OPUS"), "video/webm"],
  "webm that begins with its sound": [ebml("webm", "A_OPUS", "V_VP8"), "video/webm"],
  "webm whose tracks come later": [ebml("webm"), "video/webm"],
  "sound as webm": [ebml("webm", "A_OPUS"), "audio/webm"],
  mkv: [ebml("matroska", "V_MPEG4/ISO/AVC"), "video/x-matroska"],
  mka: [ebml("matroska", "A_FLAC"), "audio/x-matroska"],
  mpeg: [bytes([0, 0, 1, 0xba, 0x44]), "video/mpeg"],
  avi: [riff("AVI LIST"), "video/x-msvideo"],
  mp3: [bytes("ID3", [3, 0, 0, 0, 0, 0, 10], Array<number>(10).fill(0), [0xff, 0xfb, 0x90, 0x00]), "audio/mpeg"],
  "mp3 after a large image": [bytes("ID3", [3, 0, 0, 0, 30, 0, 0]), "audio/mpeg"],
  wav: [riff("WAVEfmt "), "audio/wav"],
  flac: [bytes("fLaC"), "audio/flac"],
  ogg: [ogg("\x01vorbis"), "audio/ogg"],
  opus: [ogg("OpusHead"), "audio/ogg"],
  aac: [bytes([0xff, 0xf1, 0x50, 0x80]), "audio/aac"],
  m4a: [ftyp("M4A "), "audio/mp4"],
  aiff: [bytes("FORM", [0, 0, 0, 0], "AIFF"), "audio/aiff"],
  "sound that a browser recorded as mp4": [bytes([...ftyp("iso5")], [...box("moov", track("soun"))]), "audio/mp4"],
  "mp4 with audio and video": [bytes([...ftyp("iso5")], [...box("moov", track("soun"), track("vide"))]), "video/mp4"],
};

test.for(Object.entries(files))("%s is detected by its bytes", async ([, [head, mime]]) => {
  expect(await detect(padded(head))).toEqual({ mime, kind: mime.split("/")[0] });
});

test("an mp4 whose index does not end in the first bytes counts as video", async () => {
  const whole = Buffer.concat([ftyp("iso5"), box("moov", track("soun"), Buffer.alloc(9_000))]);
  expect(await detect(whole)).toMatchObject({ mime: "audio/mp4" });
  expect(await detect(whole.subarray(0, 8_000))).toMatchObject({ mime: "video/mp4" });
});

const refused: Readonly<Record<string, Buffer>> = {
  nothing: Buffer.alloc(0),
  html: bytes("<!DOCTYPE html><html></html>"),
  svg: bytes('<svg xmlns="http://www.w3.org/2000/svg"></svg>'),
  "svg with a prologue": bytes('<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"></svg>'),
  pdf: bytes("%PDF-1.7"),
  zip: bytes("PK", [3, 4, 20, 0]),
  program: bytes([0x7f], "ELF"),
  photoshop: bytes("8BPS", [0, 1]),
  icon: bytes([0, 0, 1, 0]),
  flash: bytes("FLV", [1]),
  "windows media": bytes([0x30, 0x26, 0xb2, 0x75, 0x8e, 0x66, 0xcf, 0x11, 0xa6, 0xd9]),
};

test.for(Object.entries(refused))("%s is not accepted", async ([, head]) => {
  expect(await detect(head)).toBeUndefined();
});

test("a declared type is accepted under its usual names, in any case, with parameters", () => {
  const names = {
    "image/jpg": "image/jpeg",
    " IMAGE/PNG ": "image/png",
    "audio/x-wav": "audio/wav",
    "audio/mp3": "audio/mpeg",
    "audio/webm;codecs=opus": "audio/webm",
    "video/x-m4v": "video/mp4",
    "video/avi": "video/x-msvideo",
    "application/ogg": "audio/ogg",
  };
  for (const [name, mime] of Object.entries(names)) expect(mediaType(name)?.mime).toBe(mime);
  for (const name of ["", "image", "image/", "image/svg+xml", "text/html", "application/octet-stream", "constructor"])
    expect(mediaType(name)).toBeUndefined();
});
