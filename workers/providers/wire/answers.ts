import { pipeline, Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { ServiceError } from "#errors";
import { isDeeper } from "#formats";
import type { Clock } from "#platform/clock";
import type { HttpAnswer } from "#platform/http";
import { type JsonObject, UpstreamFailure } from "../provider.ts";
import { failureOf } from "./failures.ts";

export const errorLimitBytes = 64 * 1024;

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** What JSON.parse takes at any depth, JSON.stringify and whatever else recurs does not. */
const deepest = 512;

export function parse(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    // Each level takes two characters at least: what is short, as most events are, needs no walk.
    if (isObject(value) && (text.length <= 2 * deepest || !isDeeper(value, deepest))) return value;
  } catch {}
  // What it is instead may quote a prompt: it goes nowhere.
  throw new UpstreamFailure("unavailable", "what came is no JSON object that can be used");
}

/** Of those fields, what is there. */
export const pick = (from: JsonObject, fields: readonly string[]): JsonObject =>
  Object.fromEntries(fields.flatMap((field) => (from[field] == null ? [] : [[field, from[field]]])));

/** The failure that an answer other than a success stands for. */
export async function refusal(
  answer: HttpAnswer,
  signal: AbortSignal,
  clock: Clock,
  read = failureOf,
): Promise<UpstreamFailure> {
  // An error without a readable body is still told by its status.
  const text = await whole(answer, errorLimitBytes, signal).catch((error: unknown) => {
    if (signal.aborted) throw error;
    return "";
  });
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {}
  return read(answer.status, answer.headers, body, clock);
}

/** `hold`: told of what comes. */
export async function whole(
  answer: HttpAnswer,
  limitBytes: number,
  signal: AbortSignal,
  hold?: (bytes: number) => void,
): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const part of decoded(answer)) {
      bytes += part.length;
      if (bytes > limitBytes) throw new UpstreamFailure("unavailable", `an answer over ${limitBytes} bytes`);
      hold?.(part.length);
      parts.push(part);
    }
  } catch (error) {
    broken(error, signal);
  }
  return (parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)).toString("utf8");
}

const decoders: Readonly<Record<string, () => NodeJS.ReadWriteStream>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/** We ask for no compression; some proxies compress nevertheless. */
export function decoded({ headers, body }: HttpAnswer): AsyncIterable<Buffer> {
  const encoding = headers["content-encoding"]?.toLowerCase() ?? "identity";
  if (encoding === "identity" || encoding === "") return body;
  const decoder = decoders[encoding];
  if (!decoder) throw new UpstreamFailure("unavailable", `an answer in the encoding ${encoding.slice(0, 40)}`);
  // The outcome is read from the decoder itself.
  return pipeline(Readable.from(body), decoder(), () => {}) as unknown as AsyncIterable<Buffer>;
}

/** Whatever broke on the way, in the forms that a provider may throw. */
export function broken(error: unknown, signal: AbortSignal): never {
  if (signal.aborted) throw signal.reason;
  if (error instanceof UpstreamFailure || error instanceof ServiceError) throw error;
  const { code, message } = error as NodeJS.ErrnoException;
  throw new UpstreamFailure("unavailable", code ?? message, { cause: error });
}
