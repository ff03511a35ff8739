import { type Generated, type GenerationCall, type JsonObject, UpstreamFailure } from "../provider.ts";
import { secondsOf } from "../recording.ts";
import { isObject, parse, pick, whole } from "../wire/answers.ts";
import { failureInside } from "../wire/failures.ts";
import type { ProviderClient } from "../wire/provider-client.ts";
import { formOf } from "./form.ts";

/** As the provider documents it. */
const recordingLimitBytes = 25 * 1024 * 1024;
const answerLimitBytes = 64 * 1024 * 1024;

const told = ["text", "language", "languages", "duration", "segments", "words", "logprobs", "usage"];
const plainFormats: readonly unknown[] = ["text", "srt", "vtt"];

/** Priced by the length that the provider measured; by our own measure where it tells none. */
export async function transcription(provider: ProviderClient, call: GenerationCall): Promise<Generated> {
  const { stream: _, format, response_format = format, ...fields } = call.input;
  const file = call.uploads.get(String(fields.file));
  if (!file) throw new UpstreamFailure("refused", "A recording is needed: the id of an upload.", { param: "file" });
  const recording = await file.read(recordingLimitBytes);
  const uploads = new Map(call.uploads).set(file.id, { ...file, read: () => Promise.resolve(recording) });
  const form = await formOf({ ...fields, response_format, model: call.model }, uploads, () => recordingLimitBytes);
  const answer = await provider.send({ path: "/audio/transcriptions", form, accept: "*/*" }, call);
  const text = await whole(answer, answerLimitBytes, call.signal);
  const isJson = /\bjson\b/i.test(answer.headers["content-type"] ?? "") || !plainFormats.includes(response_format);
  const parsed = isJson ? parse(text) : { text };
  if (parsed.error != null) throw failureInside(parsed, provider.clock);
  if (typeof parsed.text !== "string") throw new UpstreamFailure("unavailable", "an answer without a text");
  const seconds = secondsTold(parsed) ?? (await secondsOf(recording, file.mime));
  if (seconds === undefined)
    throw new UpstreamFailure("refused", "The length of this recording cannot be told.", { param: file.param });
  return { output: pick(parsed, told), usage: { minute: Math.round((seconds / 60) * 1e6) / 1e6 } };
}

function secondsTold({ usage, duration }: JsonObject): number | undefined {
  const { type, seconds: billed, prompt_audio_seconds } = isObject(usage) ? usage : {};
  // The last is Mistral's.
  const told = (type === "duration" ? billed : duration) ?? prompt_audio_seconds;
  const seconds = typeof told === "string" ? Number.parseFloat(told) : told;
  return typeof seconds === "number" && seconds > 0 && Number.isFinite(seconds) ? seconds : undefined;
}
