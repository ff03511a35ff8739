import type { JsonObject } from "#json";
import type { ProviderClient } from "../http/provider-client.ts";
import { type Generated, type GenerationCall, type InputFile, refusal, UpstreamFailure } from "../provider.ts";
import { wavHeader } from "../wav-header.ts";
import { generateInline } from "./read-answer.ts";

/** The types that the provider reads. */
const imageTypes: readonly string[] = ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];

export const refused = (param: string, message: string): UpstreamFailure => refusal(`${param}: ${message}`, param);

export function textIn(input: JsonObject, field: string): string {
  const text = input[field];
  if (typeof text === "string" && text !== "") return text;
  throw refused(field, "a text is needed.");
}

/** The images that a field names by the ids of uploads. */
export function imagesIn({ input, uploads }: GenerationCall, field: string, maxImages: number): readonly InputFile[] {
  const ids = input[field] == null ? [] : [input[field]].flat();
  if (ids.length > maxImages) throw refused(field, `this model takes ${maxImages} images at most.`);
  return ids.map((id) => {
    const file = typeof id === "string" ? uploads.get(id) : undefined;
    if (!file) throw refused(field, "must be the id of an upload.");
    if (imageTypes.includes(file.mime)) return file;
    throw refused(file.param, `this model does not take ${file.mime.slice(0, 100)}.`);
  });
}

/** The id of an upload in any other field would reach the provider as text. */
export function refuseOtherUploads({ uploads }: GenerationCall, used: readonly InputFile[]): void {
  for (const file of uploads.values()) if (!used.includes(file)) throw refused(file.param, "takes no upload.");
}

/** The files in base64. All of them are in memory until they are sent. */
export async function readBase64(files: readonly InputFile[], limitBytes: number) {
  const contents: { readonly mime: string; readonly data: string }[] = [];
  let remainingBytes = limitBytes;
  for (const file of files) {
    if (file.bytes > remainingBytes)
      throw refused(file.param, `the images together have more than ${limitBytes} bytes.`);
    contents.push({ mime: file.mime, data: await file.base64(remainingBytes) });
    remainingBytes -= file.bytes;
  }
  return contents;
}

const maxInputImages = 14;
/** The provider accepts 100 MB per request, in base64. */
const inputLimitBytes = 64 * 1024 * 1024;

/** The provider makes one image per call. If some of the calls fail, the others are delivered and charged. */
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
  const parts = contents.map(({ mime: mimeType, data }) => ({ inlineData: { mimeType, data } }));
  return {
    contents: [{ role: "user", parts: [...parts, { text: prompt }] }],
    // Text in the answer would cost, and callers would not get it.
    generationConfig: { responseModalities: ["IMAGE"], imageConfig, thinkingConfig: thinkingConfigOf(call.input) },
    store: false,
  };
}

/** The provider also bills thoughts. */
const thinkingConfigOf = ({ thinking_level: level }: JsonObject): JsonObject | undefined =>
  typeof level === "string" ? { thinkingLevel: level.toUpperCase() } : undefined;

/** https://ai.google.dev/gemini-api/docs/image-generation. Some models have only the first ten. */
const ratios = "1:1 2:3 3:2 3:4 4:3 4:5 5:4 9:16 16:9 21:9 1:4 4:1 1:8 8:1".split(" ");
/**
 * The provider's own sizes deviate this much from their ratios (1184x864 for 4:3), because sides are multiples of 16 or 32.
 */
const tolerance = 0.04;

/** Each resolution with the largest area, in pixels, for which it is the nearest; its own area is the same in every ratio. */
const resolutions = [
  ["512", 512 * 1024],
  ["1K", 1024 * 2048],
  ["2K", 2048 * 4096],
  ["4K", Number.POSITIVE_INFINITY],
] as const;

/** The `imageConfig` that `aspect_ratio`, `resolution` and `size` request. Returns undefined if none is set. */
function imageConfigOf({ aspect_ratio, resolution, size }: JsonObject): JsonObject | undefined {
  const sized = typeof size === "string" ? parseSize(size) : undefined;
  const aspectRatio = aspect_ratio ?? sized?.ratio;
  const requested = resolution ?? sized?.resolution;
  // 1K is the default of all models, and models without other sizes refuse the field.
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

/** The provider answers with raw samples; adding a header makes them a WAV file. */
export async function speech(client: ProviderClient, call: GenerationCall): Promise<Generated> {
  const text = textIn(call.input, "text");
  const { voice, format } = call.input;
  if (format != null && format !== "wav") throw refused("format", "this model makes only wav.");
  refuseOtherUploads(call, []);
  const speechConfig = voice == null ? undefined : { voiceConfig: { prebuiltVoiceConfig: { voiceName: voice } } };
  const json = {
    contents: [{ role: "user", parts: [{ text }] }],
    generationConfig: { responseModalities: ["AUDIO"], speechConfig },
    store: false,
  };
  await call.store(wavOf(await generateInline(client, call, json, "audio")));
  return { output: {}, usage: { character: Array.from(text).length } };
}

/**
 * The type is `audio/L16;codec=pcm;rate=24000`: 16 bits, one channel and little-endian, although L16 is big-endian by
 * definition.
 */
function wavOf({ mime, bytes }: { readonly mime: string; readonly bytes: Buffer }): Buffer {
  if (/^audio\/(x-)?wav\b/i.test(mime)) return bytes;
  const rate = Number(/;\s*rate=(\d{4,6})\b/i.exec(mime)?.[1]);
  if (!/^audio\/(l16|pcm)\b/i.test(mime) || !(rate > 0))
    throw new UpstreamFailure("unavailable", `audio of type ${mime.slice(0, 100)}`);
  return Buffer.concat([wavHeader(Math.floor(bytes.length / 2), rate), bytes]);
}
