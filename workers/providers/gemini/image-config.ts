import type { JsonObject } from "../provider.ts";
import { refused } from "./inputs.ts";

/** https://ai.google.dev/gemini-api/docs/image-generation: the ratios, of which some models have the more usual ten. */
const ratios = "1:1 2:3 3:2 3:4 4:3 4:5 5:4 9:16 16:9 21:9 1:4 4:1 1:8 8:1".split(" ");
/** The provider's own sizes differ as much from their ratios (1184x864 for 4:3), for their sides are multiples of 16 or 32. */
const tolerance = 0.04;

/** The area of each resolution, whatever the ratio, in pixels: up to which it is the nearest. */
const resolutions = [
  ["512", 512 * 1024],
  ["1K", 1024 * 2048],
  ["2K", 2048 * 4096],
  ["4K", Number.POSITIVE_INFINITY],
] as const;

const quotient = (ratio: string): number => {
  const [width = 1, height = 1] = ratio.split(":").map(Number);
  return width / height;
};

/** As the provider calls what `aspect_ratio`, `resolution` and `size` ask for; undefined if nothing does. */
export function imageConfigOf({ aspect_ratio, resolution, size }: JsonObject): JsonObject | undefined {
  const sized = typeof size === "string" ? sizeOf(size) : undefined;
  const aspectRatio = aspect_ratio ?? sized?.ratio;
  const asked = resolution ?? sized?.resolution;
  // What every model makes by itself; those that make nothing else do not know the field.
  const imageSize = asked === "1K" ? undefined : asked;
  return aspectRatio === undefined && imageSize === undefined ? undefined : { aspectRatio, imageSize };
}

function sizeOf(size: string) {
  const [, width = 0, height = 0] = (/^(\d{1,5})x(\d{1,5})$/.exec(size) ?? []).map(Number);
  const far = (ratio: string) => Math.abs(Math.log(quotient(ratio) / (width / height)));
  const [ratio] = ratios.toSorted((a, b) => far(a) - far(b));
  if (!(width > 0 && height > 0) || ratio === undefined || far(ratio) > tolerance)
    throw refused("size", `must be WIDTHxHEIGHT in one of the ratios ${ratios.join(", ")}.`);
  return { ratio, resolution: resolutions.find(([, most]) => width * height <= most)?.[0] };
}
