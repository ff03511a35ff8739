export interface Dimensions {
  readonly width: number;
  readonly height: number;
}

/** Dimensions stand near the beginning; in a JPEG they come after the camera's notes. */
const headBytes = 96 * 1024;

function ofJpeg(bytes: Buffer): Dimensions | undefined {
  for (let at = 2; at + 9 <= bytes.length; at += 2 + bytes.readUInt16BE(at + 2)) {
    const marker = bytes.readUInt16BE(at);
    if (marker < 0xff00) return undefined;
    const isFrame = marker >= 0xffc0 && marker <= 0xffcf && ![0xffc4, 0xffc8, 0xffcc].includes(marker);
    if (isFrame) return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
  }
  return undefined;
}

function ofWebp(bytes: Buffer): Dimensions | undefined {
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

/** A PNG with another chunk before its header is none that all readers agree on. */
const ofPng = (bytes: Buffer): Dimensions | undefined =>
  bytes.toString("latin1", 12, 16) === "IHDR"
    ? { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
    : undefined;

function read(bytes: Buffer): Dimensions | undefined {
  if (bytes.length < 30) return undefined;
  const magic = bytes.toString("latin1", 0, 4);
  if (magic === "\x89PNG") return ofPng(bytes);
  if (magic === "GIF8") return { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
  if (magic === "RIFF") return ofWebp(bytes);
  if (magic.startsWith("\xff\xd8")) return ofJpeg(bytes);
  return undefined;
}

/** Of a PNG, JPEG, GIF or WebP in base64; undefined where they cannot be read. */
export function dimensionsOf(base64: string): Dimensions | undefined {
  const found = read(Buffer.from(base64.slice(0, (headBytes / 3) * 4), "base64"));
  return found && found.width > 0 && found.height > 0 ? found : undefined;
}
