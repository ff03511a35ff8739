import { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { parseStream } from "music-metadata";

/** How long a recording is; undefined if that cannot be told. Of a WAV file exactly, of others as their own tables say. */
export async function secondsOf(bytes: Buffer, mime: string): Promise<number | undefined> {
  if (isWav(bytes)) return wavSeconds(bytes);
  return (await tabledSeconds(bytes, mime)) ?? (isMatroska(bytes) ? blockSeconds(bytes) : undefined);
}

const positive = (seconds: number | undefined) =>
  seconds !== undefined && Number.isFinite(seconds) && seconds > 0 ? seconds : undefined;

async function tabledSeconds(bytes: Buffer, mimeType: string): Promise<number | undefined> {
  const stream = Readable.from(pieces(bytes), { objectMode: false });
  const options = { duration: true, skipCovers: true };
  try {
    return positive((await parseStream(stream, { mimeType, size: bytes.length }, options)).format.duration);
  } catch {
    return undefined;
  }
}

const pieceBytes = 64 * 1024;

/** From one buffer the parser goes through the whole file without giving the event loop a turn. */
async function* pieces(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    if (at > 0) await setImmediate();
    yield bytes.subarray(at, at + pieceBytes);
  }
}

const tag = (bytes: Buffer, at: number) => bytes.toString("latin1", at, at + 4);
const isWav = (bytes: Buffer) =>
  bytes.length >= 12 && ["RIFF", "RF64"].includes(tag(bytes, 0)) && tag(bytes, 8) === "WAVE";

/** Formats (fmt tags) that have one sample of each channel after the other: PCM, float, A-law, mu-law, extensible. */
const sampled = [0x0001, 0x0003, 0x0006, 0x0007, 0xfffe];

/** By the bytes of sound that are there, whatever the header claims beyond them. Of packed formats by the `fact` chunk. */
function wavSeconds(bytes: Buffer): number | undefined {
  let rate = 0;
  let block = 0;
  let bytesPerSecond = 0;
  let samples: number | undefined;
  for (let at = 12; at + 8 <= bytes.length; ) {
    const size = bytes.readUInt32LE(at + 4);
    const start = at + 8;
    const left = bytes.length - start;
    if (tag(bytes, at) === "fmt " && left >= 16) {
      rate = bytes.readUInt32LE(start + 4);
      bytesPerSecond = bytes.readUInt32LE(start + 8);
      // Of channels and bits, as decoders do it: the header's own block size may be anything.
      const channelsBits = bytes.readUInt16LE(start + 2) * bytes.readUInt16LE(start + 14);
      block = sampled.includes(bytes.readUInt16LE(start)) ? channelsBits >> 3 : 0;
    } else if (tag(bytes, at) === "fact" && left >= 4) {
      samples = bytes.readUInt32LE(start);
    } else if (tag(bytes, at) === "data") {
      // Written to a pipe, the size stays open: then all that follows is sound.
      const sound = size === 0 ? left : Math.min(size, left);
      if (block > 0) return positive(Math.floor(sound / block) / rate);
      return positive(samples === undefined ? sound / bytesPerSecond : samples / rate);
    }
    at = start + size + (size % 2);
  }
  return undefined;
}

const element = {
  header: 0x1a45dfa3,
  segment: 0x18538067,
  info: 0x1549a966,
  timestampScale: 0x2ad7b1,
  cluster: 0x1f43b675,
  timestamp: 0xe7,
  simpleBlock: 0xa3,
  blockGroup: 0xa0,
  block: 0xa1,
};
const containers = [element.segment, element.info, element.cluster, element.blockGroup];
const isMatroska = (bytes: Buffer) => bytes.length >= 4 && bytes.readUInt32BE(0) === element.header;

/**
 * Of Matroska and WebM as a browser records them: no duration in the header, sizes left open. To the last block's time, and
 * as long again as from the one before. https://www.rfc-editor.org/rfc/rfc9559
 */
function blockSeconds(bytes: Buffer): number | undefined {
  let scale = 1_000_000;
  let cluster = 0;
  let last = 0;
  let gap = 0;
  for (let at = 0; at < bytes.length; ) {
    const id = numberAt(bytes, at, true);
    const size = id && numberAt(bytes, at + id.length, false);
    if (!id || !size) break;
    const start = at + id.length + size.length;
    const left = bytes.length - start;
    if (id.value === element.timestampScale) scale = unsigned(bytes, start, size.value);
    if (id.value === element.timestamp) cluster = unsigned(bytes, start, size.value);
    const track =
      id.value === element.simpleBlock || id.value === element.block ? numberAt(bytes, start, false) : undefined;
    if (track && left >= track.length + 2) {
      const time = cluster + bytes.readInt16BE(start + track.length);
      if (time > last) gap = time - last;
      last = Math.max(last, time);
    }
    at = containers.includes(id.value) ? start : start + size.value;
  }
  return positive(((last + gap) * scale) / 1e9);
}

/** An id with its length marker, or a size without; the length is in the first byte's leading zeros. */
function numberAt(bytes: Buffer, at: number, isId: boolean): { value: number; length: number } | undefined {
  const first = bytes[at] ?? 0;
  const length = Math.clz32(first) - 23;
  if (first === 0 || length > (isId ? 4 : 8) || at + length > bytes.length) return undefined;
  let value = isId ? first : first & (0xff >> length);
  for (let next = 1; next < length; next++) value = value * 256 + (bytes[at + next] as number);
  return { value, length };
}

const unsigned = (bytes: Buffer, at: number, length: number) =>
  length >= 1 && length <= 6 && at + length <= bytes.length ? bytes.readUIntBE(at, length) : 0;

/** Of 16-bit mono PCM. http://soundfile.sapp.org/doc/WaveFormat/ */
export function wavHeader(samples: number, sampleRate: number): Buffer {
  const bytes = samples * 2;
  const header = Buffer.alloc(44);
  header.write("RIFF", 0, "latin1");
  header.writeUInt32LE(36 + bytes, 4);
  header.write("WAVEfmt ", 8, "latin1");
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(sampleRate, 24);
  header.writeUInt32LE(sampleRate * 2, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write("data", 36, "latin1");
  header.writeUInt32LE(bytes, 40);
  return header;
}
