import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { crc32, createDeflate } from "node:zlib";
import { z } from "zod";
import { type Clock, sleep } from "#platform/clock";
import type { Generated, GenerationCall } from "../provider.ts";
import { hashOf, readImage, uint32 } from "./inputs.ts";
import { parseRequest, triggerOf } from "./request.ts";

const minPixels = 16;
const maxPixels = 2048;
const message = `must be WIDTHxHEIGHT, each ${minPixels} to ${maxPixels}`;

const input = z.object({
  prompt: z.string().min(1),
  n: z.int().min(1).max(4).nullish(),
  size: z
    .string()
    .regex(/^\d{2,4}x\d{2,4}$/, message)
    .refine((size) => size.split("x").every((side) => Number(side) >= minPixels && Number(side) <= maxPixels), message)
    .nullish(),
  image: z.union([z.string(), z.array(z.string()).max(16)]).nullish(),
});

export async function makeImages(clock: Clock, call: GenerationCall): Promise<Generated> {
  const { prompt, n, size, image } = parseRequest(input, call.input);
  const { signal } = call;
  const { delayMs, deliver } = triggerOf(prompt, "prompt");
  if (delayMs) await sleep(clock, delayMs, signal);
  const [width, height] = (size ?? "512x512").split("x").map(Number) as [number, number];

  const images: string[] = [];
  const hashes = [hashOf(prompt)];
  for (const [index, id] of (typeof image === "string" ? [image] : (image ?? [])).entries()) {
    const { description, hash } = await readImage(call, id, typeof image === "string" ? "image" : `image[${index}]`);
    images.push(description);
    hashes.push(hash);
  }
  const revised = images.length > 0 ? `${prompt} (with ${images.join(" and ")})` : prompt;

  const count = Math.min(n ?? 1, deliver ?? Number.POSITIVE_INFINITY);
  for (let index = 0; index < count; index++) {
    const png = await encodePng({ width, height, corners: hashOf(...hashes, String(index)) }, signal);
    await call.store(png, { revised_prompt: revised });
  }
  return { output: images.length > 0 ? { images } : {}, usage: { image: count } };
}

/** An image of `width` x `height` pixels, shaded between four colors: red, green and blue of each corner. */
interface Gradient {
  readonly width: number;
  readonly height: number;
  readonly corners: Buffer;
}

/** RGB, 8 bits a channel. https://www.w3.org/TR/png-3/ */
async function encodePng(gradient: Gradient, signal: AbortSignal): Promise<Buffer> {
  const compressed = await pipeline(strips(gradient), createDeflate(), buffer, { signal });
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    ...chunk("IHDR", Buffer.concat([uint32(gradient.width), uint32(gradient.height), Buffer.from([8, 2, 0, 0, 0])])),
    ...chunk("IDAT", compressed),
    ...chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): readonly Buffer[] {
  const name = Buffer.from(type, "latin1");
  return [uint32(data.length), name, data, uint32(crc32(data, crc32(name)))];
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
