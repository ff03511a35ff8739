import type { Request, Response } from "express";
import type { ServiceError } from "#errors";
import { splitText } from "#jobs";
import type { Clock } from "#platform/clock";

/** Sends an error. The body is already in the caller's format. */
export function answerError(res: Response, error: ServiceError, body: string): void {
  errorHeaders(res, error);
  answerJson(res, body);
}

function errorHeaders(res: Response, error: ServiceError): void {
  res.status(error.status);
  if (error.retryAfterSeconds !== undefined) res.set("retry-after", String(error.retryAfterSeconds));
  if (error.status === 401) res.set("www-authenticate", "Bearer");
  // `Upgrade` names the required protocol (RFC 9110, section 15.5.22).
  if (error.status === 426) res.set("upgrade", "HTTP/1.1");
  if (error.shouldRetry === false) res.set("x-should-retry", "false");
}

/** `body` is JSON text. */
export function answerJson(res: Response, body: string): void {
  const bytes = Buffer.from(body);
  jsonHeaders(res, bytes.length);
  res.end(bytes);
}

const jsonHeaders = (res: Response, bytes: number) =>
  res.setHeader("content-type", "application/json; charset=utf-8").setHeader("content-length", bytes);

const lingerMs = 5_000;

/**
 * Sends an error, possibly while the body is still arriving. Closing at once would reset the connection, and a caller in the
 * middle of writing would lose the answer. So the whole answer is written first, the response ends once the rest of the body
 * has been read and discarded, and the connection is cut after a few seconds.
 */
export function refuse(clock: Clock, { req, res }: { req: Request; res: Response }, error: ServiceError, body: string) {
  if (req.complete || req.destroyed) return answerError(res, error, body);
  errorHeaders(res, error);
  const bytes = Buffer.from(body);
  jsonHeaders(res, bytes.length).setHeader("connection", "close").write(bytes);

  const cancel = clock.after(lingerMs, () => req.socket.destroy());
  const end = () => {
    cancel();
    if (!res.writableEnded) res.end();
  };
  req.once("end", end).once("error", end).once("close", end);
  // A reader that stopped early is still attached.
  req.removeAllListeners("readable").on("readable", () => drop(req));
}

/** Reads of 64 KB: 12 MB a second of all refused bodies together. */
const readsAtOnce = 2;
const readsEveryMs = 10;
const dropping = new Set<Request>();
let readsLeft = readsAtOnce;

/**
 * Discards the received part of a body. However many large bodies are refused, reading them takes little processor time: the
 * others wait in their connections. A flowing stream would read up to 2 MB per turn of the event loop.
 */
function drop(req: Request): void {
  dropping.add(req);
  dropSome();
}

function dropSome(): void {
  for (const req of dropping) {
    if (readsLeft === 0) return;
    if (readsLeft-- === readsAtOnce) setTimeout(allowReads, readsEveryMs);
    dropping.delete(req);
    req.read();
  }
}

function allowReads(): void {
  readsLeft = readsAtOnce;
  dropSome();
}

const sliceBytes = 64 * 1024;

/** Like `answerJson`, for long text or text in parts, whose length as UTF-8 may be known. */
export function answerParts(
  res: Response,
  parts: readonly string[],
  length: number = parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0),
): void {
  jsonHeaders(res, length);
  // Node joins short text with the head of the answer: one write, and no copy.
  if (parts.length === 1 && length <= sliceBytes) return void res.end(parts[0]);
  writeSlices(res, slicesOf(parts));
}

/**
 * Writes the rest of an answer, each slice once the caller has read the previous one, and ends it. Other connections get their
 * turn between two slices, because the kernel takes megabytes for one connection at once.
 */
export function writeSlices(res: Response, slices: Iterator<Buffer>): void {
  let following = slices.next();
  const next = (): void => {
    if (res.closed) return;
    const slice = following;
    if (!slice.done) following = slices.next();
    // The response ends in the turn in which the kernel takes its last byte.
    if (slice.done || following.done) res.end(slice.value);
    else if (res.write(slice.value)) setImmediate(next);
    else res.once("drain", () => setImmediate(next));
  };
  next();
}

/** Encodes text one slice at a time, so that it is not in memory a second time. */
export function* slicesOf(parts: Iterable<string | Buffer>, encoding: BufferEncoding = "utf8"): Generator<Buffer> {
  for (const part of parts) {
    if (typeof part === "string") for (const text of splitText(part)) yield* cutUp(Buffer.from(text, encoding));
    else yield* cutUp(part);
  }
}

function* cutUp(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += sliceBytes) yield bytes.subarray(at, at + sliceBytes);
}

export const beginStream = (res: Response, contentType = "text/event-stream; charset=utf-8"): void => {
  // A worker may have set the content type.
  if (!res.hasHeader("content-type")) res.setHeader("content-type", contentType);
  res.writeHead(200, {
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
  });
};
