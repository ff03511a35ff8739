import type { Usage } from "#catalog";
import { inlineOf } from "#formats";
import { isObject, type JsonObject, pick } from "#json";
import type { ProviderClient } from "../http/provider-client.ts";
import { retryDownload, storeAnswer, storeEach, throwFailure } from "../http/read-answer.ts";
import { fieldsIn } from "../http/untrusted-json.ts";
import { type Generated, type GenerationCall, refusal, UpstreamFailure } from "../provider.ts";

export interface JobOutput {
  readonly output: unknown;
  /** The length that the provider bills, if it reports it. */
  readonly seconds?: number | undefined;
}

/** Stores the files of an output and counts the usage. */
export async function storeOutput(
  client: ProviderClient,
  call: GenerationCall,
  { output, seconds }: JobOutput,
  recordedSeconds: () => Promise<number>,
): Promise<Generated> {
  const { files, rest } = findFiles(output, call);
  if (call.task === "images") return { output: rest, usage: { image: await storeImages(client, call, files, rest) } };
  const [main, ...others] = files;
  const reported = seconds ?? reportedSeconds(rest, main?.about);
  if (call.task === "transcription") {
    for (const file of files) await storeFile(client, call, file);
    if (files.length === 0 && Object.keys(rest).length === 0) throw withoutFile();
    const recorded = await recordedSeconds();
    return { output: rest, usage: { minute: rounded(Math.min(reported ?? recorded, recorded) / 60) } };
  }
  if (!main) throw withoutFile();
  const usage = await storeMain(client, call, main, reported);
  for (const file of others) await storeFile(client, call, file);
  return { output: rest, usage };
}

const withoutFile = () => new UpstreamFailure("unavailable", "an output without a file");

const rounded = (count: number): number => Math.round(count * 1e6) / 1e6;

/** A video counts by its reported length, else the requested one, else the file's own, but never more than requested. */
async function storeMain(
  client: ProviderClient,
  call: GenerationCall,
  file: NamedFile,
  reported: number | undefined,
): Promise<Usage> {
  if (call.task !== "video") {
    await storeFile(client, call, file);
    return call.task === "speech" ? { character: charactersOf(call.input) } : { request: 1 };
  }
  const requested = requestedSeconds(call.input);
  const known = reported ?? requested;
  if (known === undefined) return { second: rounded(await storeMeasured(client, call, file)) };
  await storeFile(client, call, file);
  return { second: rounded(Math.min(known, requested ?? known)) };
}

const textFields = ["text", "prompt", "input", "script"];

/** Unicode code points of the text to be spoken. */
export function charactersOf(input: JsonObject): number {
  const text = textFields.map((field) => input[field]).find((each) => typeof each === "string" && each !== "");
  if (typeof text === "string") return Array.from(text).length;
  throw new UpstreamFailure("misconfigured", "a speech model whose text is in an unknown field");
}

const countFields = ["n", "num_images", "num_outputs", "max_images", "number_of_images", "batch_size"];

/** Images beyond the requested number are not charged; images that the provider's filter blacked out are not delivered. */
function storeImages(
  client: ProviderClient,
  call: GenerationCall,
  files: readonly NamedFile[],
  { has_nsfw_concepts: flags }: JsonObject,
): Promise<number> {
  const requested = countFields.map((field) => Number(call.input[field] ?? Number.NaN)).find((count) => count > 0) ?? 1;
  const clean = files.filter((_, index) => !(Array.isArray(flags) && flags[index] === true));
  if (clean.length === 0 && files.length > 0)
    throw refusal("The provider's safety filter withheld the images.", "prompt");
  return storeEach(clean.slice(0, requested), call, async (file) => {
    await storeFile(client, call, file);
    return true;
  });
}

/** Fetches a job's answer or file; failures of the request itself are not retried. */
export const fetchWithRetry = <T>(client: ProviderClient, call: GenerationCall, fetch: () => Promise<T>): Promise<T> =>
  retryDownload(client, call, fetch, ({ kind }) => kind !== "refused" && kind !== "misconfigured");

const fileLimitBytes = 512 * 1024 * 1024;
/** A file is in memory while it is measured. */
const measuredLimitBytes = 128 * 1024 * 1024;

const storeFile = (client: ProviderClient, call: GenerationCall, { url, about }: NamedFile): Promise<void> =>
  fetchWithRetry(client, call, async () => {
    if (isDataUrl(url)) return call.store(readDataUrl(url).bytes, about);
    await storeAnswer(client, call, await client.download(url, fileLimitBytes, call.signal), about);
  });

/** Stores a file and resolves with its length in seconds. */
const storeMeasured = (client: ProviderClient, call: GenerationCall, { url, about }: NamedFile): Promise<number> =>
  fetchWithRetry(client, call, async () => {
    const { bytes, mime } = isDataUrl(url) ? readDataUrl(url) : await downloadWhole(client, call, url);
    const seconds = await call.secondsOf(bytes, mime);
    if (seconds === undefined) throw new UpstreamFailure("unavailable", "a video of unknown length");
    await call.store(bytes, about);
    return seconds;
  });

async function downloadWhole(client: ProviderClient, { signal }: GenerationCall, url: string) {
  const { headers, body } = await client.download(url, measuredLimitBytes, signal);
  const parts = await Array.fromAsync(body).catch((error: unknown) => throwFailure(error, signal));
  return { bytes: Buffer.concat(parts), mime: headers["content-type"] ?? "" };
}

const isDataUrl = (url: string) => /^data:/i.test(url);

function readDataUrl(url: string): { bytes: Buffer; mime: string } {
  const { mimeType: mime = "", data = "" } = inlineOf(url) ?? {};
  const bytes = Buffer.from(data, "base64");
  if (bytes.length === 0) throw new UpstreamFailure("unavailable", "an empty file");
  return { bytes, mime };
}

/** Accepts `8`, `"8"` and `"8s"`. */
function parseSeconds(value: unknown): number | undefined {
  const count = typeof value === "string" ? Number(/^(\d+(\.\d+)?)s?$/.exec(value)?.[1]) : value;
  return typeof count === "number" && Number.isFinite(count) && count > 0 ? count : undefined;
}

const firstSeconds = (values: readonly unknown[]) => values.map(parseSeconds).find((each) => each !== undefined);

const inputFields = ["duration", "seconds", "duration_seconds", "seconds_total", "length", "video_length"];

const requestedSeconds = (input: JsonObject): number | undefined =>
  firstSeconds(inputFields.map((field) => input[field]));

/** The length that the output reports; fields of the file itself take precedence. */
const reportedSeconds = (rest: JsonObject, about: JsonObject = {}): number | undefined =>
  firstSeconds([
    about.duration,
    rest.duration,
    rest.seconds,
    rest.audio_duration,
    isObject(rest.usage) ? rest.usage.seconds : undefined,
  ]);

const recordingLimitBytes = 100 * 1024 * 1024;

/** The length of the one recording that a transcription reads. */
export async function recordedSeconds({ uploads, input, secondsOf }: GenerationCall): Promise<number> {
  const recordings = [...uploads.values()].filter(({ kind }) => kind !== "image");
  const [file] = recordings;
  if (!file || recordings.length > 1) {
    const param = Object.keys(input).find((field) => /file|audio|video|media/i.test(field)) ?? "audio";
    throw refusal(`${param}: one recording is needed, the id of an upload.`, param);
  }
  const seconds = await secondsOf(await file.read(recordingLimitBytes), file.mime, file.id);
  file.release();
  if (seconds !== undefined) return seconds;
  throw refusal("The length of this recording cannot be determined.", file.param);
}

interface NamedFile {
  /** An http, https or data URL. */
  readonly url: string;
  /** Fields of the output that describe the file. */
  readonly about: JsonObject;
}

const maxDepth = 32;
const maxFiles = 64;
const maxRestCharacters = 8 * 1024 * 1024;

const fileFields = ["width", "height", "duration", "fps"];
/** These fields hold text, even if it looks like a URL. */
const textNames = /text|prompt|transcript|lyrics/i;

/**
 * The files that an output names, each once and in their order, and what remains of the output. Models answer in any shape:
 * a URL, a list of URLs, or objects with a `url` at any depth. URLs of the input are not files of the output.
 */
function findFiles(
  output: unknown,
  { input, uploads }: GenerationCall,
): { readonly files: readonly NamedFile[]; readonly rest: JsonObject } {
  const files = new Map<string, NamedFile>();
  const given = new Set<unknown>([...uploads.values()].map(({ link }) => link));
  for (const { value } of fieldsIn(input, "")) given.add(value);
  const isGiven = (url: string) => !/^data:/i.test(url) && given.has(url);
  const add = (url: string, about: JsonObject): undefined => {
    if (files.size < maxFiles && !files.has(url) && !isGiven(url)) files.set(url, { url, about });
  };
  const visit = (value: unknown, field: string, depth: number): unknown => {
    if (typeof value === "string") return isUrl(value) && !textNames.test(field) ? add(value, {}) : value;
    if (typeof value !== "object" || value === null) return value;
    if (depth === maxDepth) throw new UpstreamFailure("unavailable", "an output that is nested too deep");
    if (isObject(value) && typeof value.url === "string" && isUrl(value.url))
      return add(value.url, pick(value, fileFields));
    const entries = Object.entries(value).flatMap(([name, each]) => {
      const rest = visit(each, Array.isArray(value) ? field : name, depth + 1);
      return rest === undefined ? [] : [[name, rest] as const];
    });
    if (entries.length === 0) return undefined;
    return Array.isArray(value) ? entries.map(([, each]) => each) : Object.fromEntries(entries);
  };
  const rest = asObject(visit(output, "", 0));
  if (JSON.stringify(rest).length > maxRestCharacters)
    throw new UpstreamFailure("unavailable", `an output of more than ${maxRestCharacters} characters`);
  return { files: [...files.values()], rest };
}

const isUrl = (text: string) => (text.length <= 8_192 && /^https?:\/\/\S+$/i.test(text)) || /^data:\S/i.test(text);

function asObject(rest: unknown): JsonObject {
  if (rest === undefined || rest === null) return {};
  if (isObject(rest)) return rest;
  if (typeof rest === "string") return { text: rest };
  // Models that stream answer with a list of parts.
  if (Array.isArray(rest) && rest.every((each) => typeof each === "string")) return { text: rest.join("") };
  return { output: rest };
}
