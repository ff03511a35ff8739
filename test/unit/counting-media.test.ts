import { deflateSync } from "node:zlib";
import { expect, test } from "vitest";
import { alone, never, said, shareCounting } from "../support/counting-setup.ts";
import { dataAddress, mp3, pdf, png, wav } from "../support/media-files.ts";
import { billOf } from "../support/provider-bills.ts";

const counting = shareCounting();
const estimate = async (part: unknown) => (await counting.estimate(said([part]), never)) - alone;
const image = (url: string, detail?: string) =>
  estimate({ type: "image_url", image_url: { url, ...(detail && { detail }) } });
const dataOf = (bytes: Buffer, type = "image/png") => dataAddress(type, bytes);

/** A JPEG with a camera's metadata before the frame's header. */
function jpeg(width: number, height: number): Buffer {
  const notes = Buffer.alloc(2 + 20_000);
  notes.writeUInt16BE(0xffe1);
  notes.writeUInt16BE(20_000, 2);
  const frame = Buffer.from([0xff, 0xc2, 0, 17, 8, height >> 8, height & 255, width >> 8, width & 255, 3]);
  return Buffer.concat([Buffer.from([0xff, 0xd8]), notes, frame, Buffer.alloc(32)]);
}

test.each([
  ["PNG", png(750, 800)],
  ["JPEG", jpeg(750, 800)],
])("an image counts by its pixels: %s", async (_, bytes) => {
  expect(await image(dataOf(bytes))).toBe(800);
});

test("an image counts as 85 at least, as 1,600 at most, as 85 if requested in low detail", async () => {
  expect(await image(dataOf(png(10, 10)))).toBe(85);
  expect(await image(dataOf(png(8_000, 8_000)))).toBe(1_600);
  expect(await image(dataOf(png(8_000, 8_000)), "low")).toBe(85);
});

test.each([
  ["a link", "https://example.com/a.png"],
  ["an upload", "upl_abc"],
  ["no base64", "data:image/png;base64,!!!"],
  ["cut short", dataOf(png(10, 10).subarray(0, 20))],
  ["an unknown kind", dataOf(Buffer.alloc(100, 7))],
  ["a JPEG whose sizes do not fit", dataOf(Buffer.from([0xff, 0xd8, 0xff, 0xe1, 0, 0, ...Buffer.alloc(64)]))],
])("an image that cannot be measured counts as a megapixel: %s", async (_, url) => {
  expect(await image(url)).toBe(1_400);
});

test("audio counts ten tokens a second", async () => {
  const audio = (bytes: number, format: string) =>
    estimate({ type: "input_audio", input_audio: { data: Buffer.alloc(bytes).toString("base64"), format } });
  expect(await audio(48_000 * 3, "wav")).toBe(30);
  expect(await audio(16_000 * 3, "mp3")).toBe(30);
});

test("a file counts by its pages, estimated from its size", async () => {
  const file = (file_data: string) => estimate({ type: "file", file: { file_data } });
  expect(await file("https://example.com/a.pdf")).toBe(1_500);
  expect(await file(dataOf(Buffer.alloc(1_000), "application/pdf"))).toBe(1_500);
  expect(await file(dataOf(Buffer.alloc(3 * 64 * 1024), "application/pdf"))).toBe(4_500);
  expect(await file(dataOf(Buffer.alloc(3_000), "text/plain"))).toBe(750);
});

const prose = (words: number, seed: number): string =>
  Array.from({ length: words }, (_, n) => vocabulary[(seed * 31 + n * n * 7 + n) % vocabulary.length]).join(" ");
const vocabulary =
  "the of model a provider invoice and to is in that quarterly revenue were reported with as for customer his they at be this from have or delivery one had by word but not what all when your can said".split(
    " ",
  );

/** Counts by the owner's published rules, in `test/support/provider-bills.ts`. */
const owned = (id: string, part: object) =>
  counting.estimate({ ...said([part]), model: id.replace(/^\w+\//, "") }, never, id.split("/")[0]);
const models = [
  "openai/gpt-4o",
  "openai/gpt-5.1",
  "openai/gpt-5.5",
  "openai/gpt-5.4-mini",
  "openai/gpt-6-sol",
  "anthropic/claude-haiku-4-5",
  "anthropic/claude-opus-5-5",
  "google/gemini-2.5-pro",
  "google/gemini-3.8-flash",
] as const;
const near = (counted: number, billed: number) => Math.abs(counted - alone - billed) / billed;

test.each(models)("media of a model count within 15 % of what its provider bills: %s", async (id) => {
  for (const [width, height] of [
    [200, 100],
    [800, 600],
    [1_024, 1_024],
    [3_000, 2_000],
    [600, 6_000],
  ] as const)
    for (const detail of ["low", "high", "original"] as const) {
      const part = { type: "image_url", image_url: { url: dataOf(png(width, height)), detail } };
      expect(near(await owned(id, part), billOf(id, { kind: "image", width, height, detail }))).toBeLessThan(0.15);
    }
  for (const [pages, words] of [
    [1, 300],
    [12, 500],
    [130, 200],
  ] as const)
    for (const shape of [{}, { deflated: false }, { objectStreams: true }]) {
      const texts = Array.from({ length: pages }, (_, n) => prose(words, n));
      const part = { type: "file", file: { file_data: dataOf(pdf(texts, shape), "application/pdf") } };
      expect(near(await owned(id, part), billOf(id, { kind: "pdf", texts }))).toBeLessThan(0.15);
    }
  if (!id.startsWith("google")) return;
  for (const [file, format] of [
    [wav(90), "wav"],
    [wav(90, 8_000), "wav"],
    [mp3(90), "mp3"],
  ] as const) {
    const part = { type: "input_audio", input_audio: { data: file.toString("base64"), format } };
    expect(near(await owned(id, part), billOf(id, { kind: "audio", seconds: 90 }))).toBeLessThan(0.15);
  }
});

test("a hostile document is counted, and so is the next one", async () => {
  const bomb = deflateSync(Buffer.alloc(48 * 1024 * 1024, "BT (x) Tj ET "));
  const stream = Buffer.concat([
    Buffer.from(`1 0 obj<</Filter/FlateDecode/Length ${bomb.length}>>stream\n`),
    bomb,
    Buffer.from("\nendstream endobj\n"),
  ]);
  const page = Buffer.from("2 0 obj<</Type/Page>>endobj\n");
  const hostile = [
    Buffer.concat([Buffer.from("%PDF-1.7\n"), page, ...Array.from({ length: 40 }, () => stream)]),
    Buffer.from(`%PDF-1.7\n${"1 0 obj ".repeat(200_000)}`),
    Buffer.from(`%PDF-1.7\n${"stream ".repeat(500_000)}`),
    Buffer.from(`%PDF-1.7\n${"/Type/Page ".repeat(200_000)}`),
    Buffer.from(`%PDF-1.7\n1 0 obj<</Length 9>>stream\nBT Tj ${"(".repeat(2_000_000)} endstream`),
  ];
  for (const bytes of hostile) {
    const part = { type: "file", file: { file_data: dataOf(bytes, "application/pdf") } };
    expect(await owned("openai/gpt-5.5", part)).toBeGreaterThan(1_000);
  }
  expect(await counting.estimate(said("hello"), never)).toBe(alone + 1);
}, 30_000);
