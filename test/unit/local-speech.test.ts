import { expect, test } from "vitest";
import { begin, generate } from "../support/local-media-setup.ts";

/** The verified header, and the samples. */
function decode(wav: Buffer) {
  expect(wav.toString("latin1", 0, 4) + wav.toString("latin1", 8, 16)).toBe("RIFFWAVEfmt ");
  expect(wav.readUInt32LE(4)).toBe(wav.length - 8);
  const [format, channels] = [wav.readUInt16LE(20), wav.readUInt16LE(22)];
  const [rate, perSecond] = [wav.readUInt32LE(24), wav.readUInt32LE(28)];
  const [block, bits] = [wav.readUInt16LE(32), wav.readUInt16LE(34)];
  expect({ format, channels, rate, perSecond, block, bits }).toEqual({
    format: 1,
    channels: 1,
    rate: 24_000,
    perSecond: 48_000,
    block: 2,
    bits: 16,
  });
  expect(wav.toString("latin1", 36, 40)).toBe("data");
  expect(wav.readUInt32LE(40)).toBe(wav.length - 44);
  const samples = Array.from({ length: (wav.length - 44) / 2 }, (_, at) => wav.readInt16LE(44 + at * 2));
  return { samples, seconds: samples.length / 24_000 };
}

const loudness = (samples: readonly number[]) =>
  Math.sqrt(samples.reduce((sum, each) => sum + each ** 2, 0) / samples.length);

const speech = async (text: string, voice = "alto") => {
  const made = await generate("speech", { text, voice });
  expect(made.stored).toHaveLength(1);
  return { ...made, wav: made.stored[0]?.bytes as Buffer };
};

test.each([
  ["a", 0.3],
  ["abcd", 0.3],
  ["Fifteen letters", 1],
  ["a".repeat(150), 10],
  ["a".repeat(900), 60],
])("a text of 15 characters takes a second, the least 0.3: %#", async (text, seconds) => {
  const { wav, output } = await speech(text);
  const duration = decode(wav).seconds;
  expect(duration).toBeCloseTo(seconds, 3);
  expect(output).toEqual({ format: "wav", duration });
});

test("it is streamed, and counts code points, not bytes or UTF-16 units", async () => {
  const { stored, usage } = await speech("Grüße 👋🏽 ".repeat(20));
  expect(stored[0]?.pieces).toBeGreaterThan(10);
  expect(usage).toEqual({ character: 9 * 20 });
});

test("the maximum of characters counts code points", async () => {
  expect((await generate("speech", { text: "👋".repeat(4_096) })).usage).toEqual({ character: 4_096 });
});

test("letters have tones, blanks and punctuation are silent", async () => {
  const { samples } = decode((await speech("aaaa    aaaa....")).wav);
  const part = (from: number) => loudness(samples.slice((from + 1) * 1600, (from + 4) * 1600));
  const [said, blank, saidAgain, point] = [part(0), part(4), part(8), part(12)] as const;
  expect(said).toBeGreaterThan(1_000);
  expect(saidAgain).toBeGreaterThan(1_000);
  expect(blank).toBeLessThan(said / 20);
  expect(point).toBeLessThan(said / 20);
});

test("characters have distinct tones, and none is clipped", async () => {
  const { samples } = decode((await speech("aaaaaaaaiiiiiiii")).wav);
  const turns = (from: number, to: number) =>
    samples.slice(from, to).filter((each, at) => each < 0 !== (samples[from + at - 1] ?? 0) < 0).length;
  expect(Math.abs(turns(1600, 12_000) - turns(14_400, 24_800))).toBeGreaterThan(100);
  expect(samples.reduce((most, each) => Math.max(most, Math.abs(each)), 0)).toBeLessThan(24_000);
});

test("the same text and voice sound the same, another voice has another pitch", async () => {
  const [alto, again, bass] = [
    await speech("Hello there"),
    await speech("Hello there"),
    await speech("Hello there", "b"),
  ];
  expect(again.wav).toEqual(alto.wav);
  expect(bass.wav).not.toEqual(alto.wav);
  expect(bass.wav.length).toBe(alto.wav.length);
});

test.each([
  ["text", { text: "" }],
  ["text", { text: "👋".repeat(4097) }],
  ["text", {}],
  ["voice", { text: "a", voice: "" }],
  ["format", { text: "a", format: "flac" }],
])("an invalid input is refused naming %s", async (param, input) => {
  const { done, stored } = begin("speech", { voice: "alto", ...input });
  await expect(done).rejects.toMatchObject({ kind: "refused", param });
  expect(stored).toEqual([]);
});

test("once aborted no further part is made", async () => {
  const reason = new Error("disconnected");
  const controller = new AbortController();
  const { done, stored, storing } = begin("speech", { text: "a".repeat(4096) }, { signal: controller.signal });
  setImmediate(() => controller.abort(reason));
  await expect(done).rejects.toBe(reason);
  await expect(storing[0]).rejects.toBe(reason);
  expect(stored).toEqual([]);
});
