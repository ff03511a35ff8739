/** Bytes per second where the header does not say: WAV of 24 kHz, 16 bits, one channel; 128 kbit/s where compressed. */
const usualWavRate = 48_000;
const usualCompressedRate = 16_000;
const headBytes = 64 * 1024;

function wavBytesPerSecond(head: Buffer): number {
  const at = head.indexOf("fmt ");
  return at < 0 || at + 20 > head.length ? 0 : head.readUInt32LE(at + 16);
}

/** kbit/s of layer 3 by the four bits in the frame header: MPEG-1, and MPEG-2 and 2.5. */
const bitrates = {
  first: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  later: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
} as const;
const rates = [44_100, 48_000, 32_000] as const;

/** The offset of the first MP3 frame, after an ID3 tag if there is one. */
function firstFrame(head: Buffer): number {
  let at = 0;
  if (head.toString("latin1", 0, 3) === "ID3" && head.length > 10)
    at = 10 + [6, 7, 8, 9].reduce((size, each) => size * 128 + (head[each] ?? 0), 0);
  for (; at + 4 <= head.length; at++) if (head[at] === 0xff && ((head[at + 1] ?? 0) & 0xe6) === 0xe2) return at;
  return -1;
}

function mp3Seconds(head: Buffer, bytes: number): number | undefined {
  const at = firstFrame(head);
  if (at < 0) return undefined;
  const version = ((head[at + 1] ?? 0) >> 3) & 3;
  const code = head[at + 2] ?? 0;
  const kbits = bitrates[version === 3 ? "first" : "later"][code >> 4] ?? 0;
  const rate = (rates[(code >> 2) & 3] ?? 0) / (version === 3 ? 1 : version === 2 ? 2 : 4);
  // With a variable bitrate the first frame says how many frames there are.
  const first = head.subarray(at, at + 64);
  const mark = Math.max(first.indexOf("Xing"), first.indexOf("Info"));
  if (mark >= 0 && rate > 0 && mark + 12 <= first.length && (first.readUInt32BE(mark + 4) & 1) === 1)
    return (first.readUInt32BE(mark + 8) * (version === 3 ? 1_152 : 576)) / rate;
  return kbits > 0 ? (bytes - at) / (kbits * 125) : undefined;
}

/** Seconds of a recording, by its header where that says so, else by its size. */
export function secondsOf(base64: string, format: string): number {
  const bytes = Math.floor((base64.length * 3) / 4);
  const head = Buffer.from(base64.slice(0, (headBytes / 3) * 4), "base64");
  if (format === "wav") return bytes / (wavBytesPerSecond(head) || usualWavRate);
  return (format === "mp3" ? mp3Seconds(head, bytes) : undefined) ?? bytes / usualCompressedRate;
}
