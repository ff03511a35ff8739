import { invalidValue } from "#errors";
import { byteLength, isSet, type JsonObject, list, object } from "#json";
import { type MediaSource, mediaPartOf, uploadOf } from "./media-source.ts";
import { checkMediaType } from "./media-types.ts";
import { valuesIn } from "./scan-json.ts";
import type { CallSize, Feature, MediaPart, ParsedCall, UploadRef } from "./types.ts";
import { addUpload } from "./uploads.ts";

/** The measurements collected while walking the content of a request. */
export const newMeasure = (features: Map<Feature, string>) => ({
  features,
  parts: [] as MediaPart[],
  uploads: [] as UploadRef[],
  cacheWrites: undefined as CallSize["cacheWrites"],
  mediaBytes: 0,
  textBytes: 0,
  /** JSON values in the arguments of tool calls. */
  argumentValues: 0,
  /** Set if the prompt repeats tools, their calls and results much as they are in the body. */
  framed: false,
});

export type Measure = ReturnType<typeof newMeasure>;

/** Measures the content of a media part and notes its feature, which the field `at` requests. */
export function measureMedia(source: MediaSource, at: string, measure: Measure): void {
  const { kind, holder, path } = source;
  measure.features.set(kind, at);
  if (kind === "audio") checkMediaType(holder["format"], `${path}.format`);
  const upload = uploadOf(source);
  if (upload) {
    addUpload(measure.uploads, upload);
    measure.parts.push({ kind, upload: upload.id });
    return;
  }
  const { part, characters } = mediaPartOf(source);
  measure.parts.push(part);
  if (part.bytes !== undefined) measure.mediaBytes += characters;
}

/** Converts the measure of a call. `toolTokens` are prompt tokens that its tools cost beyond their bytes. */
export function measuredCall(
  { parts, uploads, features, cacheWrites, mediaBytes, textBytes, framed }: Measure,
  bodyBytes: number,
  size: Pick<CallSize, "messages" | "choices">,
  { toolTokens = 0, outputCap }: { readonly toolTokens?: number; readonly outputCap?: number | null | undefined } = {},
): Pick<ParsedCall, "size" | "textBytes" | "features" | "uploads"> {
  const inputBytes = Math.max(0, bodyBytes - mediaBytes);
  return {
    textBytes: framed || features.has("tools") ? inputBytes : textBytes,
    size: {
      inputBytes: inputBytes + toolTokens,
      ...size,
      parts,
      ...(cacheWrites && { cacheWrites }),
      ...(outputCap != null && { outputCap }),
    },
    features,
    uploads,
  };
}

/** A call whose input is only text, in a format without features. */
export const textCall = (
  model: string,
  textBytes: number,
  size: Pick<CallSize, "inputBytes" | "messages" | "searches">,
): ParsedCall => ({
  model,
  stream: false,
  textBytes,
  size: { ...size, parts: [], choices: 1 },
  features: new Map(),
  uploads: [],
});

/** The limit in addition to the values of the body itself. */
const maxArgumentValues = 100_000;

/** Counts the values in a tool call's arguments. They are JSON in a string, which conversion parses. */
export function measureArguments(json: unknown, param: string, measure: Measure): void {
  if (typeof json !== "string") return;
  try {
    measure.argumentValues += valuesIn(json, maxArgumentValues - measure.argumentValues);
  } catch {
    throw invalidValue(param, `${param}: the arguments of tool calls have more than ${maxArgumentValues} values.`);
  }
}

/**
 * The values of a cache breakpoint's `ttl`. The longer lifetime has its own price. For a model without that price a
 * hint (`isHint`) is dropped, and any other request is refused.
 */
export const anthropicLifetimes = { short: "5m", long: "1h", isHint: true };
export const openaiLifetimes = { short: "30m", long: "12h", isHint: false };

/** Notes that the request writes to the prompt cache. */
export function noteCacheWrite(
  holder: unknown,
  at: string,
  { short, long, isHint }: typeof anthropicLifetimes,
  measure: Measure,
): void {
  if (!isSet(holder)) return;
  const { ttl } = object(holder);
  if (isSet(ttl) && ttl !== short && ttl !== long)
    throw invalidValue(`${at}.ttl`, `${at}.ttl must be '${short}' or '${long}'.`);
  if (ttl === long && !isHint) measure.features.set("cache_retention", `${at}.ttl`);
  measure.cacheWrites = ttl === long ? "long" : (measure.cacheWrites ?? "short");
}

/** Returns an OpenAI-compatible server's own reasoning details; those of other formats are signed or encrypted. */
export const ownDetails = (details: unknown): readonly JsonObject[] =>
  Array.isArray(details)
    ? list(details).filter(
        ({ type, signature, data }) => type === "reasoning.text" && signature == null && data == null,
      )
    : [];

/** Counts the UTF-8 bytes of the text, reasoning, refusal and tool calls in a chat message or delta. */
export function outputBytes(delta: JsonObject): number {
  let bytes = byteLength(delta["content"]) + byteLength(delta["refusal"]);
  const reasoning = delta["reasoning_content"] ?? delta["reasoning"];
  if (reasoning != null) bytes += byteLength(reasoning);
  else for (const detail of ownDetails(delta["reasoning_details"])) bytes += byteLength(detail["text"]);
  if (Array.isArray(delta["tool_calls"]))
    for (const call of delta["tool_calls"]) {
      const { name, arguments: args } = object(object(call)["function"]);
      bytes += byteLength(name) + byteLength(args);
    }
  return bytes;
}

/** Typical for English text. */
export const estimatedBytesPerToken = 4;

/** Estimates tokens where the provider reports none. */
export const estimateTokens = (bytes: number): number => Math.ceil(bytes / estimatedBytesPerToken);
