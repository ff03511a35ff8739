import { type Generated, type GenerationCall, type JsonObject, UpstreamFailure } from "../provider.ts";
import type { ProviderClient } from "../wire/provider-client.ts";
import { imagesIn, readBase64, refused, refuseOtherUploads, textIn } from "./inputs.ts";
import { generateInline } from "./read-answer.ts";

const maxInputImages = 14;
/** The provider takes 100 MB a request, in base64. */
const inputLimitBytes = 64 * 1024 * 1024;

/** The provider makes one image a call. If some of the calls fail, the others are delivered and charged. */
export async function images(client: ProviderClient, call: GenerationCall): Promise<Generated> {
  const json = await requestFor(call);
  const count = typeof call.input.n === "number" ? call.input.n : 1;
  const generateOne = async () => call.store((await generateInline(client, call, json, "image")).bytes);
  const outcomes = await Promise.allSettled(Array.from({ length: count }, generateOne));
  call.signal.throwIfAborted();
  const failures = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as unknown] : []));
  // Failures that are not the provider's, of storage for example, fail the call.
  const internal = failures.find((failure) => !(failure instanceof UpstreamFailure));
  if (internal !== undefined || failures.length === count) throw internal ?? failures[0];
  for (const failure of failures) call.log.warn({ kind: (failure as UpstreamFailure).kind }, "an image failed");
  return { output: {}, usage: { image: count - failures.length } };
}

async function requestFor(call: GenerationCall): Promise<JsonObject> {
  const prompt = textIn(call.input, "prompt");
  const imageConfig = imageConfigOf(call.input);
  const files = imagesIn(call, "image", maxInputImages);
  refuseOtherUploads(call, files);
  const contents = await readBase64(files, inputLimitBytes);
  const parts = files.map(({ mime: mimeType }, at) => ({ inlineData: { mimeType, data: contents[at] } }));
  return {
    contents: [{ role: "user", parts: [...parts, { text: prompt }] }],
    // Text in the answer would cost, and callers would not get it.
    generationConfig: { responseModalities: ["IMAGE"], imageConfig, thinkingConfig: thinkingConfigOf(call.input) },
    store: false,
  };
}

/** Thoughts are billed too. */
const thinkingConfigOf = ({ thinking_level: level }: JsonObject): JsonObject | undefined =>
  typeof level === "string" ? { thinkingLevel: level.toUpperCase() } : undefined;

/** https://ai.google.dev/gemini-api/docs/image-generation. Some models have only the first ten. */
const ratios = "1:1 2:3 3:2 3:4 4:3 4:5 5:4 9:16 16:9 21:9 1:4 4:1 1:8 8:1".split(" ");
/** The provider's own sizes differ from their ratios by as much (1184x864 for 4:3), as sides are multiples of 16 or 32. */
const tolerance = 0.04;

/** Each resolution with the largest area, in pixels, for which it is the nearest; its own area is the same in every ratio. */
const resolutions = [
  ["512", 512 * 1024],
  ["1K", 1024 * 2048],
  ["2K", 2048 * 4096],
  ["4K", Number.POSITIVE_INFINITY],
] as const;

/** What `aspect_ratio`, `resolution` and `size` request, in the provider's names; undefined if they are not set. */
function imageConfigOf({ aspect_ratio, resolution, size }: JsonObject): JsonObject | undefined {
  const sized = typeof size === "string" ? parseSize(size) : undefined;
  const aspectRatio = aspect_ratio ?? sized?.ratio;
  const requested = resolution ?? sized?.resolution;
  // The default of all models, and models without other sizes refuse the field.
  const imageSize = requested === "1K" ? undefined : requested;
  return aspectRatio === undefined && imageSize === undefined ? undefined : { aspectRatio, imageSize };
}

function parseSize(size: string) {
  const [, width = 0, height = 0] = (/^(\d{1,5})x(\d{1,5})$/.exec(size) ?? []).map(Number);
  const distance = (ratio: string) => {
    const [across = 1, down = 1] = ratio.split(":").map(Number);
    return Math.abs(Math.log(across / down / (width / height)));
  };
  const [ratio] = ratios.toSorted((a, b) => distance(a) - distance(b));
  if (!(width > 0 && height > 0) || ratio === undefined || distance(ratio) > tolerance)
    throw refused("size", `must be WIDTHxHEIGHT in one of the ratios ${ratios.join(", ")}.`);
  return { ratio, resolution: resolutions.find(([, maxPixels]) => width * height <= maxPixels)?.[0] };
}
