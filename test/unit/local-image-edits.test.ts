import { deflateSync } from "node:zlib";
import { expect, test } from "vitest";
import { decodePng, readPng } from "../../workers/providers/local/png.ts";
import { begin, generate, upload } from "../support/local-media-setup.ts";
import { pngChunk } from "../support/media-files.ts";

type Pixel = readonly [red: number, green: number, blue: number, alpha: number];
type Draw = (x: number, y: number) => Pixel;

interface Shape {
  readonly colorType?: number;
  readonly depth?: number;
  /** The filter of the row: 0 to 4. */
  readonly filter?: (y: number) => number;
  readonly interlace?: number;
  /** The palette of an indexed image; a pixel's color is an index into it. */
  readonly palette?: readonly Pixel[];
}

/** A PNG file that follows https://www.w3.org/TR/png-3/ exactly, with any filter and type of color. */
function pngFile(width: number, height: number, draw: Draw, shape: Shape = {}): Buffer {
  const { colorType = 6, depth = 8, filter = () => 0, interlace = 0, palette = [] } = shape;
  const samplesOf = ([red, green, blue, alpha]: Pixel): number[] => {
    if (colorType === 3) return [palette.findIndex((each) => each.join() === [red, green, blue, alpha].join())];
    const color = colorType === 2 || colorType === 6 ? [red, green, blue] : [red];
    return colorType >= 4 ? [...color, alpha] : color;
  };
  const rows: number[][] = [];
  for (let y = 0; y < height; y++) {
    const row: number[] = [];
    for (let x = 0; x < width; x++)
      // The low byte of 16 bits must not matter.
      for (const sample of samplesOf(draw(x, y))) row.push(...(depth === 16 ? [sample, 77] : [sample]));
    rows.push(row);
  }
  const step = (rows[0]?.length ?? 0) / width;
  const raw = rows.flatMap((row, y) => {
    const used = filter(y);
    const above = rows[y - 1] ?? row.map(() => 0);
    const filtered = row.map((value, x) => {
      const [a, b, c] = [row[x - step] ?? 0, above[x] ?? 0, x < step ? 0 : (above[x - step] ?? 0)];
      const [toA, toB, toC] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
      const paeth = toA <= toB && toA <= toC ? a : toB <= toC ? b : c;
      return (value - ([0, a, b, (a + b) >> 1, paeth][used] ?? 0)) & 255;
    });
    return [used, ...filtered];
  });
  const header = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, depth, colorType, 0, 0, interlace]);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  const data = deflateSync(Buffer.from(raw));
  const colors = [
    pngChunk("PLTE", Buffer.from(palette.flatMap((each) => each.slice(0, 3)))),
    pngChunk("tRNS", Buffer.from(palette.map(([, , , alpha]) => alpha))),
  ];
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    pngChunk("IHDR", header),
    ...(colorType === 3 ? colors : []),
    // Split the data into several chunks, as most files do.
    pngChunk("IDAT", data.subarray(0, 7)),
    pngChunk("IDAT", data.subarray(7)),
    pngChunk("IEND", Buffer.alloc(0)),
  ]);
}

const { signal } = new AbortController();

/** Red, green, blue and alpha of every pixel. */
async function pixelsOf(file: Buffer | undefined, width: number, height: number): Promise<number[][]> {
  const png = readPng(file ?? Buffer.alloc(0));
  const pixels = png && (await decodePng(png, { width, height }, signal));
  if (!pixels) throw new Error("not decoded");
  return Array.from({ length: width * height }, (_, at) => [...pixels.subarray(at * 4, at * 4 + 4)]);
}

const drawn = (draw: Draw, width: number, height: number) =>
  Array.from({ length: width * height }, (_, at) => [...draw(at % width, Math.floor(at / width))]);

const colorful: Draw = (x, y) => [(x * 37) % 256, (y * 91 + x) % 256, (x * y * 13) % 256, (x * 5 + y * 11) % 256];
const gray: Draw = (x, y) => [(x * 37 + y) % 256, (x * 37 + y) % 256, (x * 37 + y) % 256, 255];
const four: readonly Pixel[] = [
  [255, 0, 0, 255],
  [0, 255, 0, 0],
  [0, 0, 255, 128],
  [9, 9, 9, 255],
];

test.each<readonly [what: string, draw: Draw, shape: Shape]>([
  ["every filter", colorful, { filter: (y) => y % 5 }],
  ["16 bits a channel", colorful, { depth: 16, filter: (y) => 4 - (y % 5) }],
  ["no alpha", (x, y) => [...colorful(x, y).slice(0, 3), 255] as unknown as Pixel, { colorType: 2, filter: () => 4 }],
  ["gray", gray, { colorType: 0, filter: () => 3 }],
  ["gray with alpha", (x, y) => [...gray(x, y).slice(0, 3), x * 9] as unknown as Pixel, { colorType: 4 }],
  ["a palette", (x, y) => four[(x + y) % 4] as Pixel, { colorType: 3, palette: four }],
])("a PNG file with %s is decoded exactly", async (_, draw, shape) => {
  expect(await pixelsOf(pngFile(23, 17, draw, shape), 23, 17)).toEqual(drawn(draw, 23, 17));
});

test("a PNG file that would block the event loop is not decoded: of one long row, or of a million chunks", () => {
  const small = pngFile(16, 20, colorful);
  const long = Buffer.from(small);
  long.writeUInt32BE(4096 * 4096, 16);
  long.writeUInt32BE(1, 20);
  expect(readPng(long)).toBeUndefined();
  const empty = Array<Buffer>(1_000_000).fill(pngChunk("IDAT", Buffer.alloc(0)));
  expect(readPng(Buffer.concat([small.subarray(0, 33), ...empty, small.subarray(33)]))).toBeUndefined();
  expect(readPng(small)).toBeDefined();
});

const png = (id: string, bytes: Buffer, param = "image") => upload("image/png", bytes, { id, param });
const opaque: Draw = (x, y) => [x * 10, y * 10, 99, 255];
const image = png("upl_image", pngFile(16, 20, opaque));
/** Transparent on one side. */
const mask = png(
  "upl_mask",
  pngFile(16, 20, (x) => [0, 0, 0, x < 8 ? 0 : 255]),
  "mask",
);
const edit = { prompt: "at night", image: image.id, size: "16x20" };

const edited = async (input: object, uploads = [image]) =>
  (await generate("images", { ...edit, ...input }, { uploads })).stored.map(({ bytes }) => bytes);

test("opaque areas of the mask have the image's pixels, and the prompt decides elsewhere", async () => {
  const [result] = await edited({ mask: mask.id }, [image, mask]);
  const pixels = await pixelsOf(result, 16, 20);
  const original = drawn(opaque, 16, 20);
  const isEdited = (at: number) => at % 16 < 8;
  expect(pixels.filter((_, at) => !isEdited(at))).toEqual(original.filter((_, at) => !isEdited(at)));
  const changed = pixels.filter((pixel, at) => isEdited(at) && pixel.join() !== original[at]?.join());
  expect(changed.length).toBeGreaterThan(150);
  const [other] = await edited({ mask: mask.id, prompt: "by day" }, [image, mask]);
  const byDay = await pixelsOf(other, 16, 20);
  expect(byDay.filter((_, at) => !isEdited(at))).toEqual(original.filter((_, at) => !isEdited(at)));
  expect(byDay).not.toEqual(pixels);
});

test("without a mask transparent parts of the image are edited, and an opaque image shines through by half", async () => {
  const cut = png(
    "upl_cut",
    pngFile(16, 20, (x, y) => [x * 10, y * 10, 99, y < 10 ? 0 : 255]),
  );
  const [withHole] = await edited({ image: cut.id }, [cut]);
  expect((await pixelsOf(withHole, 16, 20)).slice(160)).toEqual(drawn(opaque, 16, 20).slice(160));
  const black = png(
    "upl_black",
    pngFile(16, 20, () => [0, 0, 0, 255]),
  );
  const white = png(
    "upl_white",
    pngFile(16, 20, () => [255, 255, 255, 255]),
  );
  const range = async (file: typeof black) =>
    (await pixelsOf((await edited({ image: file.id }, [file]))[0], 16, 20)).flatMap((pixel) => pixel.slice(0, 3));
  expect(Math.max(...(await range(black)))).toBeLessThanOrEqual(128);
  expect(Math.min(...(await range(white)))).toBeGreaterThanOrEqual(127);
});

test("the image is scaled to the size of the answer", async () => {
  const all = png(
    "upl_mask",
    pngFile(16, 20, () => [0, 0, 0, 255]),
    "mask",
  );
  const [result] = await edited({ size: "32x40", mask: all.id }, [image, all]);
  expect(await pixelsOf(result, 32, 40)).toEqual(drawn((x, y) => opaque(x >> 1, y >> 1), 32, 40));
});

test("a variation needs no prompt, and each differs from the others and from the image", async () => {
  const input = { image: image.id, size: "16x20", n: 3, variation: true };
  const { stored, usage } = await generate("images", input, { uploads: [image] });
  const all = await Promise.all(stored.map(({ bytes }) => pixelsOf(bytes, 16, 20)));
  expect(new Set([...all, drawn(opaque, 16, 20)].map((each) => each.join())).size).toBe(4);
  expect(usage).toEqual({ image: 3 });
});

const gif = upload("image/gif", Buffer.from("GIF89a\x10\x00\x14\x00".padEnd(30, "\0"), "latin1"), { id: "upl_gif" });

test("an image that is not decoded is represented by colors made from its bytes", async () => {
  const interlaced = png("upl_odd", pngFile(16, 20, opaque, { interlace: 1 }));
  for (const file of [gif, interlaced]) {
    const [result] = await edited({ image: file.id, mask: mask.id }, [file, mask]);
    const [other] = await edited({ image: file.id, mask: mask.id, prompt: "by day" }, [file, mask]);
    const [one, two] = [await pixelsOf(result, 16, 20), await pixelsOf(other, 16, 20)];
    const untouched = (pixels: number[][]) => pixels.filter((_, at) => at % 16 >= 8);
    expect(untouched(one)).toEqual(untouched(two));
    expect(one).not.toEqual(two);
  }
});

const damaged = pngFile(16, 20, colorful, { filter: () => 7 });
const cutOff = Buffer.concat([pngFile(400, 300, colorful).subarray(0, 5_000)]);
const noPixels = Buffer.concat([pngFile(16, 20, opaque).subarray(0, 33), pngChunk("IEND", Buffer.alloc(0))]);

test.each<readonly [what: string, input: object, files: readonly ReturnType<typeof png>[], param: string]>([
  ["a mask without an image", { image: undefined, mask: mask.id }, [mask], "image"],
  ["a variation without an image", { image: undefined, variation: true }, [], "image"],
  ["neither a prompt nor a variation", { prompt: undefined }, [image], "prompt"],
  ["a mask of another size", { mask: "upl_m" }, [image, png("upl_m", pngFile(8, 20, opaque), "mask")], "mask"],
  ["a mask that is no PNG file", { mask: "upl_gif" }, [image, { ...gif, param: "mask" }], "mask"],
  ["an unknown filter", { image: "upl_bad" }, [png("upl_bad", damaged)], "image"],
  ["a file that is cut off", { image: "upl_bad" }, [png("upl_bad", cutOff)], "image"],
  ["a file without pixels", { image: "upl_bad" }, [png("upl_bad", noPixels)], "image"],
])("%s is refused naming the field", async (_, input, uploads, param) => {
  const { done, stored } = begin("images", { ...edit, ...input }, { uploads });
  await expect(done).rejects.toMatchObject({ kind: "refused", param });
  expect(stored).toEqual([]);
});
