import { pipeline, Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { ServiceError } from "#errors";
import type { HttpAnswer } from "#platform/http";
import { UpstreamFailure } from "../provider.ts";

export const errorLimitBytes = 64 * 1024;

/** The body as text. `hold` is called with the bytes of each part as it arrives. */
export async function readText(
  answer: HttpAnswer,
  limitBytes: number,
  signal: AbortSignal,
  hold?: (bytes: number) => void,
): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const part of decompressed(answer)) {
      bytes += part.length;
      if (bytes > limitBytes) throw new UpstreamFailure("unavailable", `an answer over ${limitBytes} bytes`);
      hold?.(part.length);
      parts.push(part);
    }
  } catch (error) {
    throwFailure(error, signal);
  }
  return (parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)).toString("utf8");
}

const decoders: Readonly<Record<string, () => NodeJS.ReadWriteStream>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/** Requests ask for no compression, but some proxies compress nevertheless. */
export function decompressed({ headers, body }: HttpAnswer): AsyncIterable<Buffer> {
  const encoding = headers["content-encoding"]?.toLowerCase() ?? "identity";
  if (encoding === "identity" || encoding === "") return body;
  const decoder = decoders[encoding];
  if (!decoder) throw new UpstreamFailure("unavailable", `an answer in the encoding ${encoding.slice(0, 40)}`);
  // Errors are read from the decoder itself.
  return pipeline(Readable.from(body), decoder(), () => {}) as unknown as AsyncIterable<Buffer>;
}

/** Throws what a provider may throw: the signal's reason, a ServiceError, or else an UpstreamFailure. */
export function throwFailure(error: unknown, signal: AbortSignal): never {
  if (signal.aborted) throw signal.reason;
  if (error instanceof UpstreamFailure || error instanceof ServiceError) throw error;
  const { code, message } = error as NodeJS.ErrnoException;
  throw new UpstreamFailure("unavailable", code ?? message, { cause: error });
}
