import { z } from "zod";
import { type Clock, sleep } from "#platform/clock";
import type { Generated, GenerationCall } from "../../provider.ts";
import { parseRequest } from "../request.ts";
import { triggerOf } from "../triggers.ts";
import { encodePng } from "./png.ts";
import { hashOf, readImage } from "./uploads.ts";

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

export async function makeImages(call: GenerationCall, clock: Clock): Promise<Generated> {
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
