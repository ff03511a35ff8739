import { pipeline } from "node:stream/promises";
import { crc32, createDeflate } from "node:zlib";

/** An image of `width` x `height` pixels, shaded between four colors: red, green and blue of each corner. */
export interface Gradient {
  readonly width: number;
  readonly height: number;
  readonly corners: Buffer;
}

/** RGB, 8 bits a channel. https://www.w3.org/TR/png-3/ */
export async function encodePng(gradient: Gradient, signal: AbortSignal): Promise<Buffer> {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(gradient.width, 0);
  header.writeUInt32BE(gradient.height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const compressed: Buffer[] = [];
  try {
    await pipeline(
      strips(gradient),
      createDeflate(),
      async (source: AsyncIterable<Buffer>) => {
        for await (const part of source) compressed.push(part);
      },
      { signal },
    );
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    ...chunk("IHDR", header),
    ...chunk("IDAT", Buffer.concat(compressed)),
    ...chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): readonly Buffer[] {
  const name = Buffer.from(type, "latin1");
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(data, crc32(name)));
  return [length, name, data, check];
}

/** Takes a few milliseconds to fill; the event loop gets a turn while it is compressed. */
const stripPixels = 64 * 1024;
const filterUp = 2;

/** Rows as PNG stores them: each as the difference to the one above. */
async function* strips({ width, height, corners }: Gradient): AsyncGenerator<Buffer> {
  const rows = Math.max(1, Math.floor(stripPixels / width));
  const bytes = width * 3;
  let above = new Uint8Array(bytes);
  let row = new Uint8Array(bytes);
  for (let top = 0; top < height; top += rows) {
    const strip = Buffer.allocUnsafe(Math.min(rows, height - top) * (bytes + 1));
    for (let at = 0, y = top; at < strip.length; at += bytes + 1, y++) {
      fillRow(row, corners, width, (y + 0.5) / height);
      strip[at] = filterUp;
      for (let x = 0; x < bytes; x++) strip[at + 1 + x] = (row[x] as number) - (above[x] as number);
      [above, row] = [row, above];
    }
    yield strip;
  }
}

function fillRow(row: Uint8Array, corners: Buffer, width: number, down: number): void {
  for (let channel = 0; channel < 3; channel++) {
    const between = (top: number, bottom: number) =>
      corners.readUInt8(top * 3 + channel) * (1 - down) + corners.readUInt8(bottom * 3 + channel) * down;
    const first = between(0, 2);
    const step = (between(1, 3) - first) / width;
    for (let x = 0, value = first + step / 2; x < width; x++, value += step) row[x * 3 + channel] = value;
  }
}
