import type { Response } from "express";
import type { ServiceError } from "#errors";

/** Answers an error. The body is already in the caller's format. */
export function answerError(res: Response, error: ServiceError, body: string): void {
  errorHeaders(res, error);
  answerJson(res, body);
}

export function errorHeaders(res: Response, error: ServiceError): void {
  res.status(error.status);
  if (error.retryAfterSeconds !== undefined) res.set("retry-after", String(error.retryAfterSeconds));
  if (error.status === 401) res.set("www-authenticate", "Bearer");
  if (error.shouldRetry === false) res.set("x-should-retry", "false");
}

/** `body` is JSON text. */
export function answerJson(res: Response, body: string): void {
  const bytes = Buffer.from(body);
  res.set({ "content-type": "application/json; charset=utf-8", "content-length": String(bytes.length) });
  res.end(bytes);
}

/** A write without progress for this long counts as a disconnect. */
export const stalledMs = 30_000;
const sliceBytes = 64 * 1024;

/** The same for text in parts. Each is written when the caller has read the one before. */
export function answerParts(res: Response, parts: readonly string[]): void {
  const length = parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0);
  res.set({ "content-type": "application/json; charset=utf-8", "content-length": String(length) });
  const slices = slicesOf(parts);
  const next = (): void => {
    // Not `for...of`: returning from it would end the generator.
    for (let slice = slices.next(); !slice.done; slice = slices.next())
      if (!res.write(slice.value)) return void res.once("drain", next);
    res.end();
  };
  next();
}

/** Encodes one part at a time. */
function* slicesOf(parts: readonly string[]): Generator<Buffer> {
  for (const part of parts) {
    const bytes = Buffer.from(part);
    for (let at = 0; at < bytes.length; at += sliceBytes) yield bytes.subarray(at, at + sliceBytes);
  }
}

export const beginStream = (res: Response, contentType = "text/event-stream; charset=utf-8"): void => {
  res.writeHead(200, {
    "content-type": contentType,
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
  });
};
