import { z } from "zod";
import { type Clock, sleep } from "#platform/clock";
import { type Generated, type GenerationCall, refusal } from "../provider.ts";
import { dimensionsIn, hashOf, readImage } from "./inputs.ts";
import { decodePng, encodePng, readPng, type Size } from "./png.ts";
import { parseRequest, triggerOf } from "./request.ts";

const minPixels = 16;
const maxPixels = 2048;
const message = `must be WIDTHxHEIGHT, each ${minPixels} to ${maxPixels}`;

const input = z
  .object({
    prompt: z.string().min(1).nullish(),
    variation: z.boolean().nullish(),
    n: z.int().min(1).max(4).nullish(),
    size: z
      .string()
      .regex(/^\d{2,4}x\d{2,4}$/, message)
      .refine(
        (size) => size.split("x").every((side) => Number(side) >= minPixels && Number(side) <= maxPixels),
        message,
      )
      .nullish(),
    image: z.union([z.string(), z.array(z.string()).max(16)]).nullish(),
    mask: z.string().nullish(),
  })
  .refine(({ prompt, variation }) => prompt != null || variation, { path: ["prompt"], message: "is missing" })
  .refine(({ image, mask, variation }) => image?.length || !(mask ?? variation), {
    path: ["image"],
    message: "is needed for a mask or a variation",
  });

export async function makeImages(clock: Clock, call: GenerationCall): Promise<Generated> {
  const { prompt, n, size, image, mask } = parseRequest(input, call.input);
  const { signal } = call;
  const about = prompt ?? "a variation";
  const { delayMs, deliver } = triggerOf(about, "prompt");
  if (delayMs) await sleep(clock, delayMs, signal);
  const [width, height] = (size ?? "512x512").split("x").map(Number) as [number, number];

  const images: string[] = [];
  const hashes = [hashOf(about)];
  let edited: Edited | undefined;
  for (const [index, id] of (typeof image === "string" ? [image] : (image ?? [])).entries()) {
    const file = await readImage(call, id, typeof image === "string" ? "image" : `image[${index}]`);
    images.push(file.description);
    hashes.push(file.hash);
    edited ??= await editedOf(call, file, { width, height }, mask ?? undefined);
  }
  if (edited?.maskHash) hashes.push(edited.maskHash);
  const revised = images.length > 0 ? `${about} (with ${images.join(" and ")})` : about;

  const count = Math.min(n ?? 1, deliver ?? Number.POSITIVE_INFINITY);
  for (let index = 0; index < count; index++) {
    const corners = hashOf(...hashes, String(index));
    const fill = (row: Uint8Array, y: number) => {
      fillGradient(row, corners, width, (y + 0.5) / height);
      if (edited) blend(row, edited, y * width);
    };
    const png = await encodePng({ width, height, fill }, signal);
    await call.store(png, { revised_prompt: revised });
  }
  return { output: images.length > 0 ? { images } : {}, usage: { image: count } };
}

/** The image that is edited, in the size of the answer. */
interface Edited {
  /** Red, green, blue and alpha of each pixel. */
  readonly pixels: Uint8Array;
  /** Transparent where new content goes. If undefined, new content covers half of every pixel. */
  readonly mask: Uint8Array | undefined;
  readonly maskHash: Buffer | undefined;
}

type ImageFile = Awaited<ReturnType<typeof readImage>>;

async function editedOf(call: GenerationCall, file: ImageFile, size: Size, maskId?: string): Promise<Edited> {
  call.reserveMemory(size.width * size.height * 4 * (maskId === undefined ? 1 : 2));
  const pixels = (await pixelsOf(call, file, size)) ?? gradientOf(file.hash, size);
  if (maskId === undefined) return { pixels, mask: isTransparent(pixels) ? pixels : undefined, maskHash: undefined };
  const maskFile = await readImage(call, maskId, "mask");
  const mask = await pixelsOf(call, maskFile, size);
  if (!mask) throw refusal("mask: must be a PNG file, with 8 or 16 bits a channel and not interlaced.", maskFile.param);
  const [wanted, given] = [dimensionsIn(file.bytes), dimensionsIn(maskFile.bytes)];
  if (wanted && given && (wanted.width !== given.width || wanted.height !== given.height))
    throw refusal("mask: must have the size of the first image.", maskFile.param);
  return { pixels, mask, maskHash: maskFile.hash };
}

/** Returns nothing for a format that this model does not decode. */
async function pixelsOf(call: GenerationCall, { bytes, param }: ImageFile, size: Size) {
  const png = readPng(bytes);
  if (!png) return undefined;
  const pixels = await decodePng(png, size, call.signal);
  if (!pixels) throw refusal(`${param}: the PNG file is damaged.`, param);
  return pixels;
}

/** Stands in for an image that is not decoded. */
function gradientOf(corners: Buffer, { width, height }: Size): Uint8Array {
  const pixels = new Uint8Array(width * height * 4).fill(255);
  const row = new Uint8Array(width * 3);
  for (let y = 0; y < height; y++) {
    fillGradient(row, corners, width, (y + 0.5) / height);
    for (let x = 0; x < width; x++) pixels.set(row.subarray(x * 3, x * 3 + 3), (y * width + x) * 4);
  }
  return pixels;
}

function isTransparent(pixels: Uint8Array): boolean {
  for (let at = 3; at < pixels.length; at += 4) if (pixels[at] !== 255) return true;
  return false;
}

/** Blends the edited image over a row of new content, as opaque as its mask. `from` is the first pixel of the row. */
function blend(row: Uint8Array, { pixels, mask }: Edited, from: number): void {
  for (let x = 0; x < row.length / 3; x++) {
    const at = (from + x) * 4;
    const opacity = mask ? (mask[at + 3] as number) / 255 : 0.5;
    for (let channel = 0; channel < 3; channel++) {
      const place = x * 3 + channel;
      row[place] = Math.round((pixels[at + channel] as number) * opacity + (row[place] as number) * (1 - opacity));
    }
  }
}

/** Fills a row with a gradient between four colors: red, green and blue of each corner. */
function fillGradient(row: Uint8Array, corners: Buffer, width: number, down: number): void {
  for (let channel = 0; channel < 3; channel++) {
    const between = (top: number, bottom: number) =>
      corners.readUInt8(top * 3 + channel) * (1 - down) + corners.readUInt8(bottom * 3 + channel) * down;
    const first = between(0, 2);
    const step = (between(1, 3) - first) / width;
    for (let x = 0, value = first + step / 2; x < width; x++, value += step) row[x * 3 + channel] = value;
  }
}
