import { pipeline } from "node:stream/promises";
import { crc32, createDeflate } from "node:zlib";
import type { Picture } from "./drawing.ts";

/** Truecolor, 8 bits a channel. https://www.w3.org/TR/png-3/ */
export async function encodePng(picture: Picture, signal: AbortSignal): Promise<Buffer> {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(picture.width, 0);
  header.writeUInt32BE(picture.height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const packed: Buffer[] = [];
  try {
    await pipeline(
      strips(picture),
      createDeflate(),
      async (source: AsyncIterable<Buffer>) => {
        for await (const piece of source) packed.push(piece);
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
    ...chunk("IDAT", Buffer.concat(packed)),
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

/** Takes a few milliseconds to draw; the event loop gets a turn while it is packed. */
const stripPixels = 64 * 1024;
const filterUp = 2;

/** Rows as PNG packs them: each the difference to the one above. */
async function* strips(picture: Picture): AsyncGenerator<Buffer> {
  const { width, height } = picture;
  const rows = Math.max(1, Math.floor(stripPixels / width));
  const bytes = width * 3;
  let above = new Uint8Array(bytes);
  let row = new Uint8Array(bytes);
  for (let top = 0; top < height; top += rows) {
    const strip = Buffer.allocUnsafe(Math.min(rows, height - top) * (bytes + 1));
    for (let at = 0, y = top; at < strip.length; at += bytes + 1, y++) {
      picture.row(y, row);
      strip[at] = filterUp;
      for (let x = 0; x < bytes; x++) strip[at + 1 + x] = (row[x] as number) - (above[x] as number);
      [above, row] = [row, above];
    }
    yield strip;
  }
}
