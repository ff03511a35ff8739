import { type GenerationCall, type JsonObject, UpstreamFailure } from "../provider.ts";
import { secondsOf } from "../recording.ts";
import { isObject } from "../wire/answers.ts";

/** The longest that is read to be measured. */
const recordingLimitBytes = 100 * 1024 * 1024;

export const rounded = (count: number): number => Math.round(count * 1e6) / 1e6;

/** `8`, `"8"` and `"8s"`. */
function secondsIn(value: unknown): number | undefined {
  const count = typeof value === "string" ? Number(/^(\d+(\.\d+)?)s?$/.exec(value)?.[1]) : value;
  return typeof count === "number" && Number.isFinite(count) && count > 0 ? count : undefined;
}

const inSeconds = ["duration", "seconds", "duration_seconds", "seconds_total", "length", "video_length"];

/** How long what is asked for shall be. */
export function secondsAsked(input: JsonObject): number | undefined {
  for (const field of inSeconds) {
    const seconds = secondsIn(input[field]);
    if (seconds !== undefined) return seconds;
  }
  return undefined;
}

/** How long what was made is, if the output says so; the file's own word goes first. */
export function secondsTold(rest: JsonObject, about: JsonObject = {}): number | undefined {
  const { duration, seconds, audio_duration, usage } = rest;
  const told = [about.duration, duration, seconds, audio_duration, isObject(usage) ? usage.seconds : undefined];
  return told.map(secondsIn).find((each) => each !== undefined);
}

/** The length of the one recording that a transcription is of: what it costs. */
export async function recordedSeconds({ uploads, input }: GenerationCall): Promise<number> {
  const recordings = [...uploads.values()].filter(({ kind }) => kind !== "image");
  const [file] = recordings;
  if (!file || recordings.length > 1) {
    const param = Object.keys(input).find((field) => /file|audio|video|media/i.test(field)) ?? "audio";
    throw new UpstreamFailure("refused", `${param}: one recording is needed, the id of an upload.`, { param });
  }
  const seconds = await secondsOf(await file.read(recordingLimitBytes), file.mime);
  file.release();
  if (seconds !== undefined) return seconds;
  throw new UpstreamFailure("refused", "The length of this recording cannot be told.", { param: file.param });
}
