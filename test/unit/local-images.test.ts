import { crc32, inflateSync } from "node:zlib";
import { expect, test } from "vitest";
import { begin, generate, localProvider, upload } from "../support/local-media-setup.ts";

interface Chunk {
  readonly type: string;
  readonly data: Buffer;
}

/** The chunks, with verified checksums, and the pixels: red, green, blue. */
function decode(png: Buffer) {
  expect(png.toString("latin1", 0, 8)).toBe("\x89PNG\r\n\x1a\n");
  const chunks: Chunk[] = [];
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    expect(png.readUInt32BE(at + 8 + length)).toBe(crc32(png.subarray(at + 4, at + 8 + length)));
    chunks.push({ type: png.toString("latin1", at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) });
    at += 12 + length;
  }
  expect(chunks.map(({ type }) => type)).toEqual(["IHDR", "IDAT", "IEND"]);
  const [header, data] = chunks as [Chunk, Chunk];
  const [width, height] = [header.data.readUInt32BE(0), header.data.readUInt32BE(4)];
  expect([...header.data.subarray(8)]).toEqual([8, 2, 0, 0, 0]);
  const raw = inflateSync(data.data);
  const row = width * 3 + 1;
  expect(raw.length).toBe(row * height);
  const pixels = Buffer.alloc(width * 3 * height);
  for (let y = 0; y < height; y++) {
    expect(raw[y * row]).toBe(2);
    for (let x = 0; x < width * 3; x++) {
      const above = y > 0 ? (pixels[(y - 1) * width * 3 + x] as number) : 0;
      pixels[y * width * 3 + x] = (raw[y * row + 1 + x] as number) + above;
    }
  }
  return { width, height, pixels };
}

const image = async (input: object) =>
  (await generate("images", { prompt: "a fox", ...input })).stored[0]?.bytes as Buffer;

test.each(["16x16", "512x512", "300x17", "33x1000"])("a PNG file has the requested size: %s", async (size) => {
  const { width, height } = decode(await image({ size }));
  expect(`${width}x${height}`).toBe(size);
});

test("without a size it is 512x512, one image, with the prompt as it was read", async () => {
  const { stored, usage, output } = await generate("images", { prompt: "a fox" });
  expect(stored).toHaveLength(1);
  expect(decode(stored[0]?.bytes as Buffer)).toMatchObject({ width: 512, height: 512 });
  expect(stored[0]?.about).toEqual({ revised_prompt: "a fox" });
  expect({ usage, output }).toEqual({ usage: { image: 1 }, output: {} });
});

test("the same prompt makes the same image, another prompt or index another one", async () => {
  const { stored, usage } = await generate("images", { prompt: "a fox", n: 3 });
  expect(usage).toEqual({ image: 3 });
  expect(stored[0]?.bytes).toEqual(await image({}));
  const all = [...stored.map(({ bytes }) => bytes), await image({ prompt: "a hen" })];
  expect(new Set(all.map((bytes) => bytes.toString("base64"))).size).toBe(4);
});

test("an image has many colors, rows nearly like the one above, and few bytes", async () => {
  const png = await image({ size: "1024x1024" });
  expect(png.length).toBeLessThan(500_000);
  const { pixels } = decode(png);
  const colors = new Set<number>();
  for (let at = 0; at < pixels.length; at += 3) colors.add(pixels.readUIntBE(at, 3));
  expect(colors.size).toBeGreaterThan(1_000);
  const steps = pixels.subarray(3 * 1024).map((value, at) => Math.abs(value - (pixels[at] as number)));
  expect(steps.reduce((sum, step) => sum + step, 0) / steps.length).toBeLessThan(2);
});

test("the largest image yields to the event loop many times", async () => {
  let turns = 0;
  let ticking: NodeJS.Immediate | undefined;
  const tick = () => {
    turns++;
    ticking = setImmediate(tick);
  };
  tick();
  await image({ size: "2048x2048" });
  clearImmediate(ticking);
  expect(turns).toBeGreaterThan(50);
});

test.each([
  ["size", { size: "8x512" }],
  ["size", { size: "512x2049" }],
  ["size", { size: "large" }],
  ["n", { n: 0 }],
  ["n", { n: 5 }],
  ["n", { n: 1.5 }],
  ["prompt", { prompt: "" }],
  ["prompt", { prompt: 7 }],
  ["image", { image: 7 }],
])("an invalid input is refused naming %s: %o", async (param, input) => {
  const { done, stored } = begin("images", { prompt: "a fox", ...input });
  await expect(done).rejects.toMatchObject({ name: "UpstreamFailure", kind: "refused", param });
  expect(stored).toEqual([]);
});

test("uploaded images are described in the answer, and change the image", async () => {
  const own = await image({ size: "40x30" });
  const file = upload("image/png", own, { param: "image" });
  const seen = `a PNG image of 40 x 30 pixels, ${own.length} bytes`;
  const one = await generate("images", { prompt: "a fox", image: file.id }, { uploads: [file] });
  expect(one.output).toEqual({ images: [seen] });
  expect(one.stored[0]?.about).toEqual({ revised_prompt: `a fox (with ${seen})` });
  expect(one.stored[0]?.bytes).not.toEqual(await image({}));
  const other = upload("image/gif", Buffer.from("GIF89a\x02\x00\x01\x00".padEnd(30, "\0"), "latin1"), { id: "upl_2" });
  const both = await generate("images", { prompt: "a fox", image: [file.id, "upl_2"] }, { uploads: [file, other] });
  expect(both.output).toEqual({ images: [seen, "a GIF image of 2 x 1 pixels, 30 bytes"] });
});

test.each([
  ["that is no image", upload("audio/wav", Buffer.alloc(8), { param: "image[0]" }), "image[0]"],
  ["whose bytes are none", upload("image/png", Buffer.alloc(64), { param: "image[0]" }), "image[0]"],
  ["that was not given", upload("image/png", Buffer.alloc(8), { id: "upl_other" }), "image"],
])("an upload %s is refused naming it", async (_, file, param) => {
  const image = upload("image/png", Buffer.alloc(0)).id;
  const { done } = begin("images", { prompt: "a fox", image }, { uploads: [file] });
  await expect(done).rejects.toMatchObject({ kind: "refused", param });
});

test.each([
  [2, 2],
  [0, 0],
  [9, 3],
])("deliver:%d makes and counts %d of three images", async (asked, delivered) => {
  const { stored, usage } = await generate("images", { prompt: `deliver:${asked}`, n: 3 });
  expect(stored).toHaveLength(delivered);
  expect(usage).toEqual({ image: delivered });
});

test("once aborted the next image is not stored", async () => {
  const reason = new Error("disconnected");
  const controller = new AbortController();
  const input = { prompt: "a fox", size: "64x64", n: 2 };
  const beforeStore = () => Promise.resolve(controller.abort(reason));
  const { done, storing } = begin("images", input, { signal: controller.signal, beforeStore });
  await expect(done).rejects.toBe(reason);
  await generate("images", input);
  expect(storing).toHaveLength(1);
});

test("uploads arrive as bytes, because it has no network", () => {
  expect(localProvider().takesLinks).toBe(false);
});

test("a task that it does not support is misconfigured", async () => {
  await expect(begin("music", { prompt: "a song" }).done).rejects.toMatchObject({ kind: "misconfigured" });
});
