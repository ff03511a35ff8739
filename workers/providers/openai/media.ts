import { isObject, type JsonObject, pick } from "#json";
import { joined, textOf } from "../http/blocks.ts";
import { failureInside } from "../http/failures.ts";
import type { ProviderClient } from "../http/provider-client.ts";
import { decompressed, readBody, retryDownload, storeAnswer, storeEach, throwFailure } from "../http/read-answer.ts";
import { runJob } from "../http/run-job.ts";
import { fieldsIn, parseLargeAnswer, providerFileRefusal } from "../http/untrusted-json.ts";
import { type Generated, type GenerationCall, refusal, runTask, type Tasks, UpstreamFailure } from "../provider.ts";
import { formOf } from "./form.ts";
import { readImages } from "./read-images.ts";

const megabyte = 1024 * 1024;

/**
 * Calls that generate or read files. The input is sent under the provider's names; `text`, `format`, `duration`, `resolution`
 * and `image` stand for `input`, `response_format`, `seconds`, `size` and `input_reference` where the task has those.
 */
export async function generate(client: ProviderClient, call: GenerationCall): Promise<Generated> {
  for (const { field, param } of fieldsIn(call.input, call.task === "images" ? "" : "input"))
    if (/^(file_ids?|remix_video_id)$/.test(field)) throw providerFileRefusal(field, param);
  refuseUploads(call);
  try {
    return await runTask(tasks, client, call);
  } catch (error) {
    throw inCallersNames(error, call);
  }
}

/** Only fields of a form carry bytes: the id of an upload in any other place would reach the provider as text. */
function refuseUploads({ task, input, uploads }: GenerationCall): void {
  const sent = task === "speech" ? [] : Object.values(input).flat();
  for (const { id, param } of uploads.values())
    if (!sent.includes(id)) throw refusal(`${param}: takes no upload.`, param);
}

const callersNames: Readonly<Record<string, string>> = {
  input: "text",
  response_format: "format",
  seconds: "duration",
  size: "resolution",
  input_reference: "image",
};

/** A provider's refusal names its own parameter, which the caller knows as a field of `input`. */
function inCallersNames(error: unknown, { task, input }: GenerationCall): unknown {
  if (!(error instanceof UpstreamFailure) || error.kind !== "refused" || task === "images") return error;
  const { param } = error;
  if (param === undefined || param.startsWith("input.")) return error;
  const name = callersNames[param];
  return error.withParam(`input.${name !== undefined && name in input && !(param in input) ? name : param}`);
}

const imageLimitBytes = 64 * megabyte;
/** The provider's documented limits for edits. */
const inputLimitBytes = (field: string) => (field === "mask" ? 4 : 50) * megabyte;

const imagesFields = ["created", "background", "output_format", "quality", "size", "usage"];

/**
 * Images arrive as base64 or as URLs, whichever is the model's default: `response_format` is never sent, because newer
 * models refuse it and other providers have other values for it.
 */
async function images(client: ProviderClient, call: GenerationCall): Promise<Generated> {
  const { stream: _, partial_images: __, response_format: ___, ...fields } = call.input;
  const json = { ...fields, model: call.model };
  const request =
    call.uploads.size === 0
      ? { path: "/images/generations", json }
      : { path: "/images/edits", form: await formOf(json, call.uploads, inputLimitBytes) };
  const response = await client.send(request, call);
  const { answer, images } = await readImages(decompressed(response), call.reserveMemory).catch((error: unknown) =>
    throwFailure(error, call.signal),
  );
  if (answer.error != null) throw failureInside(answer, client.clock);
  const items = Array.isArray(answer.data) ? answer.data.filter(isObject) : [];
  // Images beyond the requested number are neither delivered nor charged.
  const requested = items.slice(0, typeof fields.n === "number" ? fields.n : 1);
  const image = await storeEach(requested, call, async (item) => {
    const { b64_json, url } = item;
    const about = pick(item, ["revised_prompt"]);
    const parts = typeof b64_json === "string" ? images[Number(b64_json)]?.splice(0) : undefined;
    if (parts?.length) await call.store(joined(parts), about);
    else if (typeof url === "string")
      await storeAnswer(client, call, await client.download(url, imageLimitBytes, call.signal), about);
    else return false;
    return true;
  });
  return { output: pick(answer, imagesFields), usage: { image } };
}

const acceptAudio = "audio/*, */*;q=0.5";

async function speech(client: ProviderClient, call: GenerationCall): Promise<Generated> {
  const { text, input = text, format, response_format = format, stream_format: _, ...fields } = call.input;
  const json = { ...fields, input, response_format, model: call.model };
  await storeAnswer(client, call, await client.send({ path: "/audio/speech", json, accept: acceptAudio }, call));
  return { output: {}, usage: { character: Array.from(String(input)).length } };
}

/** The provider's documented limit. */
const recordingLimitBytes = 25 * megabyte;
const transcriptLimitBytes = 64 * megabyte;

const transcriptFields = ["text", "language", "languages", "duration", "segments", "words", "logprobs", "usage"];
const plainFormats: readonly unknown[] = ["text", "srt", "vtt"];

/** Usage is the length that the provider reports, or else the measured one. */
async function transcription(client: ProviderClient, call: GenerationCall): Promise<Generated> {
  const { stream: _, translate, format, response_format = format, ...fields } = call.input;
  const file = call.uploads.get(String(fields.file));
  if (!file) throw refusal("A recording is needed: the id of an upload.", "file");
  const recording = await file.read(recordingLimitBytes);
  const uploads = new Map(call.uploads).set(file.id, { ...file, read: () => Promise.resolve(recording) });
  const form = await formOf({ ...fields, response_format, model: call.model }, uploads, () => recordingLimitBytes);
  const path = translate === true ? "/audio/translations" : "/audio/transcriptions";
  const answer = await client.send({ path, form, accept: "*/*" }, call);
  const body = await readBody(answer, transcriptLimitBytes, call);
  const isJson = /\bjson\b/i.test(answer.headers["content-type"] ?? "") || !plainFormats.includes(response_format);
  const parsed = isJson ? await parseLargeAnswer(body) : { text: textOf(body) };
  if (parsed.error != null) throw failureInside(parsed, client.clock);
  if (typeof parsed.text !== "string") throw new UpstreamFailure("unavailable", "an answer without a text");
  const seconds = reportedSeconds(parsed) ?? (await call.secondsOf(recording, file.mime, file.id));
  if (seconds === undefined) throw refusal("The length of this recording cannot be determined.", file.param);
  return { output: pick(parsed, transcriptFields), usage: { minute: Math.round((seconds / 60) * 1e6) / 1e6 } };
}

function reportedSeconds({ usage, duration }: JsonObject): number | undefined {
  // `prompt_audio_seconds` is Mistral's.
  const { type, seconds: billed, prompt_audio_seconds } = isObject(usage) ? usage : {};
  const reported = (type === "duration" ? billed : duration) ?? prompt_audio_seconds;
  const seconds = typeof reported === "string" ? Number.parseFloat(reported) : reported;
  return typeof seconds === "number" && seconds > 0 && Number.isFinite(seconds) ? seconds : undefined;
}

const jobLimits = { limitBytes: megabyte };
/** The provider's documented limit for images. */
const referenceLimitBytes = 50 * megabyte;
const videoFields = ["created_at", "completed_at", "seconds", "size"];

const video = (client: ProviderClient, call: GenerationCall): Promise<Generated> =>
  runJob(client.clock, call, {
    submit: async () => client.sendForJson({ path: "/videos", ...(await contentFor(call)) }, call, jobLimits),
    idOf: ({ id }) => id,
    poll: (id, signal) => client.sendForJson({ path: pathOf(id) }, { ...call, signal }, jobLimits),
    running: ["queued", "in_progress"],
    ended: ["completed", "failed", "cancelled", "expired"],
    progressOf: ({ progress }) => progress,
    async collect(job, id) {
      if (job.status !== "completed") throw failureInside(job, client.clock);
      const second = secondsDelivered(job, call.input);
      await retryDownload(client, call, async () => {
        const request = { path: `${pathOf(id)}/content`, accept: "video/*, */*;q=0.5" };
        await storeAnswer(client, call, await client.send(request, call));
      });
      return { output: pick(job, videoFields), usage: { second } };
    },
    async cancel(id, signal) {
      const answer = await client.send({ method: "DELETE", path: pathOf(id) }, { ...call, signal });
      await answer.body.return?.();
    },
  });

const pathOf = (id: string) => `/videos/${encodeURIComponent(id)}`;

async function contentFor({ input, uploads, model }: GenerationCall) {
  const {
    duration,
    seconds = duration,
    resolution,
    size = resolution,
    image,
    input_reference = image,
    ...fields
  } = input;
  // The provider takes the number only as text.
  const text = typeof seconds === "number" ? String(seconds) : seconds;
  const json = { ...fields, seconds: text, size, input_reference, model };
  return uploads.size === 0 ? { json } : { form: await formOf(json, uploads, () => referenceLimitBytes) };
}

/** The delivered length, but never more than requested. */
function secondsDelivered(job: JsonObject, input: JsonObject): number {
  const seconds = [job.seconds, input.seconds ?? input.duration].map(Number).filter((each) => each > 0);
  if (seconds.length > 0) return Math.min(...seconds);
  throw new UpstreamFailure("unavailable", "a video of unknown length");
}

const tasks: Tasks<ProviderClient> = { images, speech, transcription, video };
