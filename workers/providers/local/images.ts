import { UpstreamFailure } from "../provider.ts";

/** What the local model sees of an image: of a data address its kind, size and bytes; of any other the address. */
export function describeImage(url: string, at: string): string {
  if (!/^data:/i.test(url)) return `an image at ${url.slice(0, 200)} (not fetched: this model has no network)`;
  return describeImageFile(dataOf(url), at);
}

/** Its kind, size and bytes. */
export function describeImageFile(bytes: Buffer | undefined, at: string): string {
  const image = bytes && (png(bytes) ?? gif(bytes) ?? webp(bytes) ?? jpeg(bytes));
  if (!image) throw new UpstreamFailure("refused", "The image is not a PNG, JPEG, GIF or WebP file.", { param: at });
  return `a ${image.kind} image of ${image.width} x ${image.height} pixels, ${bytes.length} bytes`;
}

interface Image {
  readonly kind: string;
  readonly width: number;
  readonly height: number;
}

function dataOf(url: string): Buffer | undefined {
  const comma = url.indexOf(",");
  if (comma === -1 || !/;\s*base64$/i.test(url.slice(0, comma))) return undefined;
  return Buffer.from(url.slice(comma + 1), "base64");
}

const tag = (bytes: Buffer, at: number, length: number) => bytes.toString("latin1", at, at + length);

function png(bytes: Buffer): Image | undefined {
  if (bytes.length < 24 || tag(bytes, 0, 8) !== "\x89PNG\r\n\x1a\n") return undefined;
  return { kind: "PNG", width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

function gif(bytes: Buffer): Image | undefined {
  if (bytes.length < 10 || !/^GIF8[79]a$/.test(tag(bytes, 0, 6))) return undefined;
  return { kind: "GIF", width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
}

/** https://developers.google.com/speed/webp/docs/riff_container */
function webp(bytes: Buffer): Image | undefined {
  if (bytes.length < 30 || tag(bytes, 0, 4) !== "RIFF" || tag(bytes, 8, 4) !== "WEBP") return undefined;
  const kind = "WebP";
  switch (tag(bytes, 12, 4)) {
    case "VP8 ":
      return { kind, width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
    case "VP8L": {
      const packed = bytes.readUInt32LE(21);
      return { kind, width: (packed & 0x3fff) + 1, height: ((packed >> 14) & 0x3fff) + 1 };
    }
    case "VP8X":
      return { kind, width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
    default:
      return undefined;
  }
}

/** Far more than any camera writes: a file of nothing but fill bytes would hold up everyone else. */
const mostSteps = 100_000;

/** Goes from segment to segment to the frame header (SOF), which has the size. */
function jpeg(bytes: Buffer): Image | undefined {
  if (bytes.length < 4 || bytes.readUInt16BE(0) !== 0xffd8) return undefined;
  for (let at = 2, steps = 0; at + 9 <= bytes.length; steps++) {
    if (bytes[at] !== 0xff || steps === mostSteps) return undefined;
    const marker = bytes[at + 1] as number;
    if (marker === 0xff) at++;
    else if (marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc)
      return { kind: "JPEG", width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
    else at += 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}
