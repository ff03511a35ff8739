import type { GenerationCall, InputFile, JsonObject } from "../provider.ts";
import { base64Of, picturesIn, refused, refuseOthers, textOf } from "./inputs.ts";

const mostReferences = 6;
/** A look at the job may bring them back. */
const picturesLimitBytes = 32 * 1024 * 1024;

/** Whole seconds, as callers may write them. */
export function secondsOf({ duration }: JsonObject): number {
  const seconds = typeof duration === "string" && /^\d{1,3}$/.test(duration) ? Number(duration) : duration;
  if (typeof seconds === "number" && Number.isInteger(seconds) && seconds > 0) return seconds;
  throw refused("duration", "a whole number of seconds is needed.");
}

/** The body that begins an interaction. */
export async function videoRequest(call: GenerationCall): Promise<JsonObject> {
  const { aspect_ratio, resolution, seed } = call.input;
  const text = textOf(call.input, "prompt");
  const duration = `${secondsOf(call.input)}s`;
  const first = picturesIn(call, "image", 1);
  const references = picturesIn(call, "reference_images", mostReferences);
  if (first.length > 0 && references.length > 0)
    throw refused("reference_images", "this model takes them or a first image, not both.");
  const pictures = [...first, ...references];
  refuseOthers(call, pictures);
  const task = first.length > 0 ? "image_to_video" : references.length > 0 ? "reference_to_video" : "text_to_video";
  return {
    model: call.model,
    input: [...(await contentOf(pictures)), { type: "text", text }],
    // JSON leaves out what is undefined.
    response_format: { type: "video", delivery: "uri", duration, aspect_ratio, resolution },
    generation_config: { video_config: { task }, seed },
    // Else the answer comes when the video is done. What runs so is stored: the provider lets it be removed, not left out.
    background: true,
    store: true,
  };
}

async function contentOf(pictures: readonly InputFile[]): Promise<readonly JsonObject[]> {
  const contents = await base64Of(pictures, picturesLimitBytes);
  return pictures.map(({ mime: mime_type }, at) => ({ type: "image", data: contents[at], mime_type }));
}
