import { expect, test } from "vitest";
import { alone, never, said, shareCounting } from "./counting-setup.ts";

const counting = shareCounting();
const estimate = async (part: unknown) => (await counting.estimate(said([part]), never)) - alone;
const image = (url: string, detail?: string) =>
  estimate({ type: "image_url", image_url: { url, ...(detail && { detail }) } });
const dataOf = (bytes: Buffer, type = "image/png") => `data:${type};base64,${bytes.toString("base64")}`;

function png(width: number, height: number): Buffer {
  const bytes = Buffer.alloc(64);
  bytes.write("\x89PNG\r\n\x1a\n", "latin1");
  bytes.write("IHDR", 12, "latin1");
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return bytes;
}

function gif(width: number, height: number): Buffer {
  const bytes = Buffer.alloc(64);
  bytes.write("GIF89a", "latin1");
  bytes.writeUInt16LE(width, 6);
  bytes.writeUInt16LE(height, 8);
  return bytes;
}

/** With a camera's notes before the frame's header. */
function jpeg(width: number, height: number): Buffer {
  const notes = Buffer.alloc(2 + 20_000);
  notes.writeUInt16BE(0xffe1);
  notes.writeUInt16BE(20_000, 2);
  const frame = Buffer.from([0xff, 0xc2, 0, 17, 8, height >> 8, height & 255, width >> 8, width & 255, 3]);
  return Buffer.concat([Buffer.from([0xff, 0xd8]), notes, frame, Buffer.alloc(32)]);
}

function webp(kind: "VP8 " | "VP8L" | "VP8X", width: number, height: number): Buffer {
  const bytes = Buffer.alloc(64);
  bytes.write(`RIFF....WEBP${kind}`, "latin1");
  if (kind === "VP8 ") {
    bytes.writeUInt16LE(width, 26);
    bytes.writeUInt16LE(height, 28);
  } else if (kind === "VP8L") bytes.writeUInt32LE((width - 1) | ((height - 1) << 14), 21);
  else {
    bytes.writeUIntLE(width - 1, 24, 3);
    bytes.writeUIntLE(height - 1, 27, 3);
  }
  return bytes;
}

test.each([
  ["PNG", png(750, 800)],
  ["GIF", gif(750, 800)],
  ["JPEG", jpeg(750, 800)],
  ["WebP, lossy", webp("VP8 ", 750, 800)],
  ["WebP, lossless", webp("VP8L", 750, 800)],
  ["WebP, extended", webp("VP8X", 750, 800)],
])("an image counts by its pixels: %s", async (_, bytes) => {
  expect(await image(dataOf(bytes))).toBe(800);
});

test("an image counts as 85 at least, as 1,600 at most, as 85 if it is asked for in low detail", async () => {
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

test("a file counts by its pages, as its bytes let them be guessed", async () => {
  const file = (file_data: string) => estimate({ type: "file", file: { file_data } });
  expect(await file("https://example.com/a.pdf")).toBe(1_500);
  expect(await file(dataOf(Buffer.alloc(1_000), "application/pdf"))).toBe(1_500);
  expect(await file(dataOf(Buffer.alloc(3 * 64 * 1024), "application/pdf"))).toBe(4_500);
  expect(await file(dataOf(Buffer.alloc(3_000), "text/plain"))).toBe(750);
});
