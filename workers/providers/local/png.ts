import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { crc32, createDeflate, createInflate } from "node:zlib";
import { uint32 } from "./inputs.ts";

/**
 * PNG (https://www.w3.org/TR/png-3/), a row at a time. No library does this within our limits: fast-png 8 inflates whatever a
 * small header hides (5 MB took a minute and 3 GB), and pngjs 7 decodes 16 megapixels in one turn of the event loop.
 */
const signature = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** An image of which only one row at a time is in memory: `fill` writes red, green and blue of the row `y`. */
interface Rows extends Size {
  readonly fill: (row: Uint8Array, y: number) => void;
}

/** Encodes RGB with 8 bits a channel. */
export async function encodePng(image: Rows, signal: AbortSignal): Promise<Buffer> {
  const compressed = await pipeline(strips(image), createDeflate(), buffer, { signal });
  return Buffer.concat([
    signature,
    ...chunk("IHDR", Buffer.concat([uint32(image.width), uint32(image.height), Buffer.from([8, 2, 0, 0, 0])])),
    ...chunk("IDAT", compressed),
    ...chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): readonly Buffer[] {
  const name = Buffer.from(type, "latin1");
  return [uint32(data.length), name, data, uint32(crc32(data, crc32(name)))];
}

/** A strip takes a few milliseconds to fill; the event loop gets a turn while it is compressed. */
const stripPixels = 64 * 1024;
const filterUp = 2;

/** Rows as PNG stores them, each as the difference from the row above. */
async function* strips({ width, height, fill }: Rows): AsyncGenerator<Buffer> {
  const rows = Math.max(1, Math.floor(stripPixels / width));
  const bytes = width * 3;
  let above = new Uint8Array(bytes);
  let row = new Uint8Array(bytes);
  for (let top = 0; top < height; top += rows) {
    const strip = Buffer.allocUnsafe(Math.min(rows, height - top) * (bytes + 1));
    for (let at = 0, y = top; at < strip.length; at += bytes + 1, y++) {
      fill(row, y);
      strip[at] = filterUp;
      for (let x = 0; x < bytes; x++) strip[at + 1 + x] = (row[x] as number) - (above[x] as number);
      [above, row] = [row, above];
    }
    yield strip;
  }
}

/** Larger images would take seconds to unfilter. */
const maxPixels = 4096 * 4096;
/** A row is unfiltered in one turn of the event loop. */
const maxWidth = 16 * 1024;
/** Encoders write at least a few kilobytes into each chunk. */
const maxChunks = 16 * 1024;

/** Indexed by color type. */
const channelsOf: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };

interface Header extends Size {
  /** Bits of a channel: 8 or 16. */
  readonly depth: number;
  readonly colorType: number;
  readonly channels: number;
  /** The colors of an indexed image: red, green and blue of each, and their alphas. */
  readonly palette: Buffer;
  readonly alphas: Buffer;
  readonly data: readonly Buffer[];
}

/**
 * Returns undefined for a file that is not decoded: not a PNG, interlaced, with less than 8 bits a channel, or over a limit.
 */
export function readPng(file: Buffer): Header | undefined {
  if (!file.subarray(0, 8).equals(signature) || file.length < 33) return undefined;
  const [width, height] = [file.readUInt32BE(16), file.readUInt32BE(20)];
  const [depth = 0, colorType = 0, , , interlace] = file.subarray(24, 29);
  const channels = channelsOf[colorType];
  if (channels === undefined || interlace !== 0 || (depth !== 8 && (depth !== 16 || colorType === 3))) return undefined;
  if (width === 0 || height === 0 || width > maxWidth || width * height > maxPixels) return undefined;
  const data: Buffer[] = [];
  let palette: Buffer = Buffer.alloc(0);
  let alphas: Buffer = Buffer.alloc(0);
  let chunks = 0;
  for (let at = 8; at + 12 <= file.length; ) {
    if (++chunks > maxChunks) return undefined;
    const type = file.toString("latin1", at + 4, at + 8);
    const content = file.subarray(at + 8, at + 8 + file.readUInt32BE(at));
    if (type === "IDAT") data.push(content);
    else if (type === "PLTE") palette = content;
    else if (type === "tRNS" && colorType === 3) alphas = content;
    at += 12 + content.length;
  }
  return { width, height, depth, colorType, channels, palette, alphas, data };
}

/** Red, green, blue and alpha of each pixel, scaled to `to`. Returns undefined if the file is damaged. */
export async function decodePng(png: Header, to: Size, signal: AbortSignal): Promise<Uint8Array | undefined> {
  const pixels = new Uint8Array(to.width * to.height * 4);
  const step = (png.channels * png.depth) / 8;
  const bytes = png.width * step;
  let [above, row] = [new Uint8Array(bytes), new Uint8Array(bytes)];
  let y = 0;
  let filled = 0;
  let nextRow = 0;
  const sourceRow = (target: number) => Math.floor(((target + 0.5) * png.height) / to.height);

  /** The filter byte of the current row; -1 until it has been read. */
  let filter = -1;
  const take = (piece: Buffer): boolean => {
    for (let at = 0; at < piece.length && y < png.height; ) {
      if (filter < 0) {
        filter = piece[at++] as number;
        if (filter > 4) return false;
        continue;
      }
      const length = Math.min(bytes - filled, piece.length - at);
      row.set(piece.subarray(at, at + length), filled);
      filled += length;
      at += length;
      if (filled < bytes) continue;
      unfilter(row, above, step, filter);
      for (; nextRow < to.height && sourceRow(nextRow) === y; nextRow++)
        sampleRow(png, row, step, pixels.subarray(nextRow * to.width * 4, (nextRow + 1) * to.width * 4));
      [above, row] = [row, above];
      [filled, filter] = [0, -1];
      y++;
    }
    return true;
  };

  try {
    await pipeline(
      Readable.from(png.data),
      createInflate(),
      async (inflated: AsyncIterable<Buffer>) => {
        // Inflating stops after the last row, even if more data follows.
        for await (const piece of inflated) if (!take(piece) || y === png.height) return;
      },
      { signal },
    );
  } catch (error) {
    signal.throwIfAborted();
    // zlib refuses the data, or reading ended early.
    if (!(error instanceof Error && "code" in error)) throw error;
  }
  return y === png.height ? pixels : undefined;
}

function unfilter(row: Uint8Array, above: Uint8Array, step: number, filter: number): void {
  for (let x = 0; x < row.length; x++) {
    const before = x < step ? 0 : (row[x - step] as number);
    const corner = x < step ? 0 : (above[x - step] as number);
    row[x] = (row[x] as number) + predicted(filter, before, above[x] as number, corner);
  }
}

function predicted(filter: number, before: number, up: number, corner: number): number {
  if (filter === 0) return 0;
  if (filter === 1) return before;
  if (filter === 2) return up;
  if (filter === 3) return (before + up) >> 1;
  const estimate = before + up - corner;
  const [a, b, c] = [Math.abs(estimate - before), Math.abs(estimate - up), Math.abs(estimate - corner)];
  if (a <= b && a <= c) return before;
  return b <= c ? up : corner;
}

function sampleRow(png: Header, row: Uint8Array, step: number, into: Uint8Array): void {
  const { colorType, palette, alphas, depth } = png;
  const target = into.length / 4;
  const sample = depth / 8;
  for (let x = 0; x < target; x++) {
    const at = Math.floor(((x + 0.5) * png.width) / target) * step;
    const first = row[at] as number;
    const hasColor = colorType === 2 || colorType === 6;
    if (colorType === 3) {
      into.set(palette.subarray(first * 3, first * 3 + 3), x * 4);
      into[x * 4 + 3] = alphas[first] ?? 255;
      continue;
    }
    into[x * 4] = first;
    into[x * 4 + 1] = hasColor ? (row[at + sample] as number) : first;
    into[x * 4 + 2] = hasColor ? (row[at + 2 * sample] as number) : first;
    into[x * 4 + 3] = colorType >= 4 ? (row[at + step - sample] as number) : 255;
  }
}
