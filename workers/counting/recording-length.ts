import { parseBuffer } from "music-metadata";

/**
 * The length of a recording in seconds. Returns undefined if it is unknown. The length is exact for WAV files, and otherwise
 * comes from the file's tables. Must run in a thread that is terminated when it takes too long: some files keep the parser
 * busy for minutes.
 */
export async function secondsOf(bytes: Buffer, mime: string): Promise<number | undefined> {
  if (isWav(bytes)) return wavSeconds(bytes);
  return (await tableSeconds(bytes, mime)) ?? (isMatroska(bytes) ? blockSeconds(bytes) : undefined);
}

const positive = (seconds: number | undefined) =>
  seconds !== undefined && Number.isFinite(seconds) && seconds > 0 ? seconds : undefined;

async function tableSeconds(bytes: Buffer, mimeType: string): Promise<number | undefined> {
  try {
    return positive((await parseBuffer(bytes, mimeType, { duration: true, skipCovers: true })).format.duration);
  } catch {
    return undefined;
  }
}

const tag = (bytes: Buffer, at: number) => bytes.toString("latin1", at, at + 4);
const isWav = (bytes: Buffer) =>
  bytes.length >= 12 && ["RIFF", "RF64"].includes(tag(bytes, 0)) && tag(bytes, 8) === "WAVE";

/** Format tags of uncompressed samples: PCM, float, A-law, mu-law, extensible. */
const sampleFormats = [0x0001, 0x0003, 0x0006, 0x0007, 0xfffe];

/** Uses the bytes of audio in the file, even if its header claims more; compressed formats use the `fact` chunk. */
function wavSeconds(bytes: Buffer): number | undefined {
  let rate = 0;
  let block = 0;
  let bytesPerSecond = 0;
  let samples: number | undefined;
  for (let at = 12; at + 8 <= bytes.length; ) {
    const size = bytes.readUInt32LE(at + 4);
    const start = at + 8;
    const available = bytes.length - start;
    if (tag(bytes, at) === "fmt " && available >= 16) {
      rate = bytes.readUInt32LE(start + 4);
      bytesPerSecond = bytes.readUInt32LE(start + 8);
      // Decoders compute the block from channels and bits, so the header's block size may be wrong.
      const channelsBits = bytes.readUInt16LE(start + 2) * bytes.readUInt16LE(start + 14);
      block = sampleFormats.includes(bytes.readUInt16LE(start)) ? channelsBits >> 3 : 0;
    } else if (tag(bytes, at) === "fact" && available >= 4) {
      samples = bytes.readUInt32LE(start);
    } else if (tag(bytes, at) === "data") {
      // A file written to a pipe has no size; its audio runs to the end.
      const audioBytes = size === 0 ? available : Math.min(size, available);
      if (block > 0) return positive(Math.floor(audioBytes / block) / rate);
      return positive(samples === undefined ? audioBytes / bytesPerSecond : samples / rate);
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
 * Matroska and WebM as browsers record them have no duration in the header, and elements of unknown size. The length is the
 * last block's time, plus its distance from the block before. https://www.rfc-editor.org/rfc/rfc9559
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
    if (id.value === element.timestampScale) scale = unsigned(bytes, start, size.value);
    if (id.value === element.timestamp) cluster = unsigned(bytes, start, size.value);
    const track =
      id.value === element.simpleBlock || id.value === element.block ? numberAt(bytes, start, false) : undefined;
    if (track && start + track.length + 2 <= bytes.length) {
      const time = cluster + bytes.readInt16BE(start + track.length);
      if (time > last) gap = time - last;
      last = Math.max(last, time);
    }
    at = containers.includes(id.value) ? start : start + size.value;
  }
  return positive(((last + gap) * scale) / 1e9);
}

/** An id with its length marker, or a size without it. The leading zeros of the first byte encode the length. */
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
