import { type GenerationCall, type JsonObject, UpstreamFailure } from "../provider.ts";
import { secondsOf } from "../recording.ts";
import { isObject } from "../wire/json.ts";

/** `8`, `"8"` and `"8s"`. */
function parseSeconds(value: unknown): number | undefined {
  const count = typeof value === "string" ? Number(/^(\d+(\.\d+)?)s?$/.exec(value)?.[1]) : value;
  return typeof count === "number" && Number.isFinite(count) && count > 0 ? count : undefined;
}

const firstSeconds = (values: readonly unknown[]) => values.map(parseSeconds).find((each) => each !== undefined);

const inputFields = ["duration", "seconds", "duration_seconds", "seconds_total", "length", "video_length"];

/** The length that the input requests. */
export const requestedSeconds = (input: JsonObject): number | undefined =>
  firstSeconds(inputFields.map((field) => input[field]));

/** The length that the output reports; what it says of the file itself comes first. */
export const reportedSeconds = (rest: JsonObject, about: JsonObject = {}): number | undefined =>
  firstSeconds([
    about.duration,
    rest.duration,
    rest.seconds,
    rest.audio_duration,
    isObject(rest.usage) ? rest.usage.seconds : undefined,
  ]);

const recordingLimitBytes = 100 * 1024 * 1024;

/** The length of the one recording that a transcription reads. */
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
  throw new UpstreamFailure("refused", "The length of this recording cannot be determined.", { param: file.param });
}
