import type { Content, Dimensions } from "./types.ts";

/** Base64 characters of the header. The signature of a PDF may be anywhere in its first kilobyte. */
const headerCharacters = 1_368;

const imageBrands = /^(avif|avis|heic|heix|heim|heis|hevc|hevx|mif1|msf1)$/;
const audioBrands = /^(M4A |M4B |M4P )$/;

/** Determines the content of an ISO base media file from the brand of its first box. */
function brandContent(head: Buffer): Content {
  const brand = head.toString("latin1", 8, 12);
  if (imageBrands.test(brand)) return "image";
  return audioBrands.test(brand) ? "audio" : "video";
}

const riffContents: ReadonlyMap<string, Content> = new Map([
  ["WEBP", "image"],
  ["WAVE", "audio"],
  ["AVI ", "video"],
]);

/** Detects a frame of MPEG audio (layers 2 and 3) or AAC: eleven set bits, then a valid version and layer. */
function isAudioFrame(head: Buffer): boolean {
  const [first = 0, second = 0, third = 0] = head;
  if (first !== 0xff || (second & 0xe0) !== 0xe0 || (second & 0x18) === 0x08) return false;
  const layer = (second >> 1) & 3;
  if (layer === 0) return (second & 0xf0) === 0xf0;
  return layer !== 3 && (third & 0xf0) !== 0xf0 && (third & 0x0c) !== 0x0c;
}

const signatures = {
  image: ["\x89PNG\r\n\x1a\n", "\xff\xd8\xff", "GIF87a", "GIF89a", "II*\0", "MM\0*"],
  audio: ["ID3", "fLaC", "OggS", "#!AMR"],
  video: ["\x1aE\xdf\xa3", "\0\0\x01\xba", "\0\0\x01\xb3", "FLV\x01"],
  other: ["PK\x03\x04"],
} as const;
const signedContents = ["image", "audio", "video", "other"] as const;

/** Determines the kind of a file by its signature. Returns undefined for text and other files without one. */
export function detectContent(head: Buffer): Content | undefined {
  const beginning = head.toString("latin1", 0, 16);
  const signed = signedContents.find((content) => signatures[content].some((each) => beginning.startsWith(each)));
  if (signed) return signed;
  if (beginning.startsWith("RIFF")) return riffContents.get(beginning.slice(8, 12));
  if (beginning.slice(4, 8) === "ftyp") return brandContent(head);
  if (/^FORM[^]{4}AIF[FC]/.test(beginning)) return "audio";
  // The reserved bytes distinguish a bitmap from a text that begins with BM.
  if (/^BM[^]{4}\0\0\0\0/.test(beginning)) return "image";
  if (/^(\xef\xbb\xbf)?\s*%PDF-/.test(beginning)) return "pdf";
  return isAudioFrame(head) ? "audio" : undefined;
}

export const headerOf = (base64: string): Buffer => Buffer.from(base64.slice(0, headerCharacters), "base64");

/** The lowest bit rate of MPEG audio is 8 kbit/s. */
const minMp3BytesPerSecond = 1_000;

/** Reads the duration from the `fmt ` chunk of an uncompressed WAV: PCM, floating point, or extensible. */
function wavSeconds(head: Buffer, bytes: number): number | undefined {
  const at = head.indexOf("fmt ") + 8;
  if (at < 8 || at + 16 > head.length || ![1, 3, 0xfffe].includes(head.readUInt16LE(at))) return undefined;
  const bytesPerSecond = (head.readUInt32LE(at + 4) * head.readUInt16LE(at + 2) * head.readUInt16LE(at + 14)) / 8;
  return bytesPerSecond > 0 ? bytes / bytesPerSecond : undefined;
}

/** Silence takes almost no bytes, so the length comes from the first metadata block. */
function flacSeconds(head: Buffer): number | undefined {
  if (head.length < 26) return undefined;
  const rate = head.readUIntBE(18, 3) >> 4;
  const samples = (head.readUInt8(21) & 0x0f) * 2 ** 32 + head.readUInt32BE(22);
  return rate > 0 && samples > 0 ? samples / rate : undefined;
}

/** Upper bound of a recording's duration. Undefined if its header does not contain one. */
export function maxSeconds(head: Buffer, bytes: number): number | undefined {
  const signature = head.toString("latin1", 0, 4);
  if (signature === "RIFF") return wavSeconds(head, bytes);
  if (signature === "fLaC") return flacSeconds(head) ?? Number.POSITIVE_INFINITY;
  const isMp3 = signature.startsWith("ID3") || (isAudioFrame(head) && (((head[1] ?? 0) >> 1) & 3) !== 0);
  return isMp3 ? bytes / minMp3BytesPerSecond : undefined;
}

/** In a JPEG the dimensions follow the camera metadata. */
const dimensionBytes = 96 * 1024;

function jpegDimensions(bytes: Buffer): Dimensions | undefined {
  for (let at = 2; at + 9 <= bytes.length; at += 2 + bytes.readUInt16BE(at + 2)) {
    const marker = bytes.readUInt16BE(at);
    if (marker < 0xff00) return undefined;
    const isFrame = marker >= 0xffc0 && marker <= 0xffcf && ![0xffc4, 0xffc8, 0xffcc].includes(marker);
    if (isFrame) return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
  }
  return undefined;
}

function webpDimensions(bytes: Buffer): Dimensions | undefined {
  switch (bytes.toString("latin1", 12, 16)) {
    case "VP8 ":
      return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
    case "VP8L": {
      const bits = bytes.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case "VP8X":
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
    default:
      return undefined;
  }
}

function readDimensions(bytes: Buffer): Dimensions | undefined {
  if (bytes.length < 30) return undefined;
  const signature = bytes.toString("latin1", 0, 4);
  if (signature === "\x89PNG") {
    // Readers disagree about a PNG with another chunk before its header.
    if (bytes.toString("latin1", 12, 16) !== "IHDR") return undefined;
    return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  }
  if (signature === "GIF8") return { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
  if (signature === "RIFF") return webpDimensions(bytes);
  if (signature.startsWith("\xff\xd8")) return jpegDimensions(bytes);
  return undefined;
}

/** Dimensions of a PNG, JPEG, GIF or WebP in base64. Undefined if they cannot be read. */
export function dimensionsOf(base64: string): Dimensions | undefined {
  const found = readDimensions(Buffer.from(base64.slice(0, (dimensionBytes / 3) * 4), "base64"));
  return found && found.width > 0 && found.height > 0 ? found : undefined;
}
