import { expect, test } from "vitest";
import { secondsOf } from "../../workers/counting/recording-length.ts";
import { generate } from "../support/local-media-setup.ts";

const text = (value: string) => Buffer.from(value, "latin1");
const u16 = (value: number) => Buffer.from([value & 0xff, value >> 8]);
const u32 = (value: number) => Buffer.concat([u16(value & 0xffff), u16(value >>> 16)]);
const chunk = (type: string, data: Buffer, size = data.length) =>
  Buffer.concat([text(type), u32(size), data, Buffer.alloc(data.length % 2)]);
const wav = (...chunks: Buffer[]) => Buffer.concat([text("RIFF"), u32(0), text("WAVE"), ...chunks]);
const format = (tag: number, channels: number, rate: number, perSecond: number, block: number, bits: number) =>
  chunk("fmt ", Buffer.concat([u16(tag), u16(channels), u32(rate), u32(perSecond), u16(block), u16(bits)]));
const stereo = format(1, 2, 8_000, 32_000, 4, 16);
const second = Buffer.alloc(32_000);

test.each([
  ["PCM", wav(stereo, chunk("data", second)), 1],
  ["with other chunks, of odd length too", wav(chunk("LIST", Buffer.alloc(7)), stereo, chunk("data", second)), 1],
  ["with half a sample at its end", wav(stereo, chunk("data", Buffer.alloc(32_003))), 1],
  ["as a pipe writes it, of open length", wav(stereo, chunk("data", second, 0xffffffff)), 1],
  ["as another pipe writes it", wav(stereo, chunk("data", second, 0)), 1],
  ["that claims more than there is", wav(stereo, chunk("data", second, 64_000_000)), 1],
  ["that claims other samples", wav(stereo, chunk("fact", u32(1)), chunk("data", second)), 1],
  ["that claims another block", wav(format(1, 2, 8_000, 1, 9_999, 16), chunk("data", second)), 1],
  ["float", wav(format(3, 1, 8_000, 32_000, 4, 32), chunk("data", second)), 1],
  ["mu-law", wav(format(7, 1, 8_000, 8_000, 1, 8), chunk("data", Buffer.alloc(4_000))), 0.5],
  [
    "ADPCM by its samples",
    wav(format(17, 1, 8_000, 1, 256, 4), chunk("fact", u32(6_000)), chunk("data", second)),
    0.75,
  ],
  ["ADPCM by its bytes", wav(format(17, 1, 8_000, 16_000, 256, 4), chunk("data", second)), 2],
  ["without a format", wav(chunk("data", second)), undefined],
  ["without sound", wav(stereo), undefined],
  ["of no sound", wav(stereo, chunk("data", Buffer.alloc(0))), undefined],
  ["of no rate", wav(format(1, 1, 0, 0, 2, 16), chunk("data", second)), undefined],
])("the length of a WAV file %s", async (_, bytes, seconds) => {
  expect(await secondsOf(bytes, "audio/wav")).toBe(seconds);
});

/** Frames of MPEG 1 layer III, 128 kbit/s and 44.1 kHz: 1152 samples, 417 bytes. */
const mp3 = (frames: number) =>
  Buffer.concat(
    Array.from({ length: frames }, () => Buffer.concat([Buffer.from([0xff, 0xfb, 0x90, 0xc0]), Buffer.alloc(413)])),
  );

test("the length of an MP3 file", async () => {
  expect(await secondsOf(mp3(400), "audio/mpeg")).toBeCloseTo((400 * 1152) / 44_100, 1);
});

test("a video without sound has no length", async () => {
  const { stored } = await generate("video", { prompt: "a fox", duration: 3, resolution: "320x240" });
  expect(await secondsOf(stored[0]?.bytes as Buffer, "video/mp4")).toBeUndefined();
});

const ebml = (id: string, data: Buffer | undefined) =>
  Buffer.concat([
    Buffer.from(id, "hex"),
    data ? Buffer.from([0x80 | data.length]) : Buffer.from("01ffffffffffffff", "hex"),
    data ?? Buffer.alloc(0),
  ]);
const block = (time: number) => ebml("a3", Buffer.from([0x81, time >> 8, time & 0xff, 0x80, 0]));
const number = (value: number) => Buffer.from([value >> 16, (value >> 8) & 0xff, value & 0xff]);

test("the length of a WebM file as browsers record it, by its blocks", async () => {
  const live = Buffer.concat([
    ebml("1a45dfa3", ebml("4282", text("webm"))),
    ebml("18538067", undefined),
    ebml("1549a966", ebml("2ad7b1", number(1_000_000))),
    ebml("1f43b675", undefined),
    ebml("e7", number(0)),
    block(0),
    block(20),
    block(40),
    ebml("1f43b675", undefined),
    ebml("e7", number(5_000)),
    block(0),
    ebml("a0", ebml("a1", Buffer.from([0x81, 0, 20, 0x80, 0]))),
  ]);
  expect(await secondsOf(live, "audio/webm")).toBe(5.04);
  for (let end = 0; end < live.length; end++) await secondsOf(live.subarray(0, end), "audio/webm");
});

test.each(["audio/mpeg", "audio/mp4", "audio/ogg", "audio/flac", "video/webm", "video/x-msvideo", "", "nonsense"])(
  "what is no recording has no length, whatever it is called: %s",
  async (mime) => {
    for (const bytes of [Buffer.alloc(0), Buffer.alloc(5_000), text("hello ".repeat(500)), Buffer.alloc(3, 0xff)])
      expect(await secondsOf(bytes, mime)).toBeUndefined();
  },
);
