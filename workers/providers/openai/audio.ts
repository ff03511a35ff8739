import { type Generated, type GenerationCall, type JsonObject, refusal, UpstreamFailure } from "../provider.ts";
import { secondsOf } from "../recording.ts";
import { failureInside } from "../wire/failures.ts";
import { isObject, parse, pick } from "../wire/json.ts";
import type { ProviderClient } from "../wire/provider-client.ts";
import { readText, storeAnswer } from "../wire/read-answer.ts";
import { formOf } from "./form.ts";

const acceptAudio = "audio/*, */*;q=0.5";

export async function speech(client: ProviderClient, call: GenerationCall): Promise<Generated> {
  const { text, input = text, format, response_format = format, stream_format: _, ...fields } = call.input;
  const json = { ...fields, input, response_format, model: call.model };
  await storeAnswer(client, call, await client.send({ path: "/audio/speech", json, accept: acceptAudio }, call));
  return { output: {}, usage: { character: Array.from(String(input)).length } };
}

/** The provider's documented limit. */
const recordingLimitBytes = 25 * 1024 * 1024;
const answerLimitBytes = 64 * 1024 * 1024;

const outputFields = ["text", "language", "languages", "duration", "segments", "words", "logprobs", "usage"];
const plainFormats: readonly unknown[] = ["text", "srt", "vtt"];

/** Usage is the length that the provider reports, or else the measured one. */
export async function transcription(client: ProviderClient, call: GenerationCall): Promise<Generated> {
  const { stream: _, format, response_format = format, ...fields } = call.input;
  const file = call.uploads.get(String(fields.file));
  if (!file) throw refusal("A recording is needed: the id of an upload.", "file");
  const recording = await file.read(recordingLimitBytes);
  const uploads = new Map(call.uploads).set(file.id, { ...file, read: () => Promise.resolve(recording) });
  const form = await formOf({ ...fields, response_format, model: call.model }, uploads, () => recordingLimitBytes);
  const answer = await client.send({ path: "/audio/transcriptions", form, accept: "*/*" }, call);
  const text = await readText(answer, answerLimitBytes, call.signal);
  const isJson = /\bjson\b/i.test(answer.headers["content-type"] ?? "") || !plainFormats.includes(response_format);
  const parsed = isJson ? parse(text) : { text };
  if (parsed.error != null) throw failureInside(parsed, client.clock);
  if (typeof parsed.text !== "string") throw new UpstreamFailure("unavailable", "an answer without a text");
  const seconds = reportedSeconds(parsed) ?? (await secondsOf(recording, file.mime));
  if (seconds === undefined) throw refusal("The length of this recording cannot be determined.", file.param);
  return { output: pick(parsed, outputFields), usage: { minute: Math.round((seconds / 60) * 1e6) / 1e6 } };
}

function reportedSeconds({ usage, duration }: JsonObject): number | undefined {
  // `prompt_audio_seconds` is Mistral's.
  const { type, seconds: billed, prompt_audio_seconds } = isObject(usage) ? usage : {};
  const reported = (type === "duration" ? billed : duration) ?? prompt_audio_seconds;
  const seconds = typeof reported === "string" ? Number.parseFloat(reported) : reported;
  return typeof seconds === "number" && seconds > 0 && Number.isFinite(seconds) ? seconds : undefined;
}
