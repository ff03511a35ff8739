import { createHash, type Hash } from "node:crypto";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { Busboy, type BusboyFileStream, type BusboyInstance } from "@fastify/busboy";
import type { Request } from "express";
import { invalidValue, lengthRequired, noCapacity, requestTooLarge, unsupportedMediaType } from "#errors";
import type { ByteShare } from "#platform/byte-budget";
import type { Clock } from "#platform/clock";
import { withSpool } from "#platform/spool";

/** 95 MB, for a raw body or the file in a form. */
const uploadLimitBytes = 95 * 1024 * 1024;

/** For the fields beside the file, and for the boundaries and headers of the parts. */
export const framingBytes = 1024 * 1024;

/** How long an upload may make no progress: the caller sends nothing, or the parser of a form is stuck. */
const idleTimeoutMs = 60_000;

const limits = { fields: 32, fieldSize: 64 * 1024, files: 2, parts: 34, headerPairs: 32, headerSize: 16 * 1024 };

/** A file as it arrives, with its length. */
export interface Source {
  readonly bytes: number;
  readonly body: AsyncIterable<Buffer>;
}

/** The file in a request. Its headers are checked; none of its bytes has been read. */
export interface UploadBody {
  /** The upper bound of its length, from the headers. */
  readonly maxBytes: number;
  /** Passes the file to `use`. It can be read once. */
  read<T>(use: (source: Source) => Promise<T>): Promise<T>;
  /** Reads the file and returns only its hash. */
  digest(): Promise<{ readonly bytes: number; readonly hash: string }>;
}

export const mediaTypeOf = (req: Request) => (req.headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase();

/** Temporary bytes of forms are taken from `share`. Throws 400, 411, 413 or 415 for the headers. */
export function uploadBody(req: Request, clock: Clock, share: ByteShare): UploadBody {
  if (!/^(identity)?$/i.test(req.headers["content-encoding"]?.trim() ?? ""))
    throw unsupportedMediaType("An upload must have no content encoding.", "content-encoding");
  return mediaTypeOf(req) === "multipart/form-data" ? formBody(req, clock, share) : rawBody(req, clock);
}

function rawBody(req: Request, clock: Clock): UploadBody {
  const { "content-length": length } = req.headers;
  if (length === undefined) throw lengthRequired();
  const bytes = Number(length);
  if (bytes > uploadLimitBytes) throw requestTooLarge(uploadLimitBytes);
  if (bytes === 0) throw invalidValue(undefined, "The body is empty; it must be a file.");
  return {
    maxBytes: bytes,
    read: (use) => use({ bytes, body: bytesOf(req, clock) }),
    async digest() {
      const hash = createHash("sha256");
      for await (const chunk of bytesOf(req, clock)) hash.update(chunk);
      return { bytes, hash: hash.digest("base64url") };
    },
  };
}

function formBody(req: Request, clock: Clock, share: ByteShare): UploadBody {
  const length = Number(req.headers["content-length"] ?? uploadLimitBytes);
  if (length > uploadLimitBytes + framingBytes) throw requestTooLarge(uploadLimitBytes, "file");
  const form = createForm(req.headers["content-type"] ?? "", uploadLimitBytes);
  const parse = (take: (file: Readable) => Promise<void>) =>
    readForm(form, uploadLimitBytes, bytesOf(req, clock), take, clock);
  return {
    maxBytes: Math.min(Math.max(length, 1), uploadLimitBytes),
    // Spooled, because storage requires the length first and a form does not state it.
    read: (use) =>
      withSpool(noDisk, async (spool) => {
        let written = 0;
        try {
          const bytes = await parse(async (file) => {
            for await (const chunk of file as AsyncIterable<Buffer>) {
              written += chunk.length;
              if (!share.resize(written)) throw noDisk(new Error("the budget of temporary bytes is used up"));
              await spool.write(chunk);
            }
          });
          return await use({ bytes, body: spool.read() });
        } finally {
          share.resize(0);
        }
      }),
    async digest() {
      const hash = createHash("sha256");
      const bytes = await parse(async (file) => {
        for await (const chunk of file) hash.update(chunk as Buffer);
      });
      return { bytes, hash: hash.digest("base64url") };
    },
  };
}

export const noDisk = (cause: unknown) =>
  noCapacity("The temporary storage for forms is full or unavailable.", 5, cause);
const brokenOff = () => invalidValue(undefined, "The body broke off before its end.");
const idle = () => invalidValue(undefined, "The body did not arrive: nothing came for a minute.");

/**
 * A request's body, at the reader's pace. Unlike the request's own iterator it leaves the connection open when the reader
 * stops early, so that an answer can still be sent, and it throws when the caller sends nothing for `idleTimeoutMs`.
 */
export async function* bytesOf(req: Request, clock: Clock): AsyncGenerator<Buffer> {
  const chunks = req.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      const { promise: timedOut, reject } = Promise.withResolvers<never>();
      const cancel = clock.after(idleTimeoutMs, () => reject(idle()));
      const chunk = chunks.next().catch(() => Promise.reject(brokenOff()));
      const next = await Promise.race([chunk, timedOut]).finally(cancel);
      // The caller disconnected, or sent more than it announced, which is a violation of HTTP.
      if (next.done && req.socket.destroyed) throw brokenOff();
      if (next.done) return;
      yield next.value as Buffer;
    }
  } finally {
    void chunks.return?.();
  }
}

/** The same source, which updates `hash` as it is read. */
export const hashed = ({ bytes, body }: Source, hash: Hash): Source => ({ bytes, body: feed(body, hash) });

async function* feed(body: AsyncIterable<Buffer>, hash: Hash): AsyncGenerator<Buffer> {
  for await (const chunk of body) {
    hash.update(chunk);
    yield chunk;
  }
}

const brokenForm = () => invalidValue(undefined, "The body is not a complete multipart form.");

/** Throws 400 when the boundary is missing or malformed. */
export function createForm(contentType: string, fileBytes: number): BusboyInstance {
  try {
    return new Busboy({
      headers: { "content-type": contentType },
      limits: { ...limits, fileSize: fileBytes },
      // Some clients send a content type but no file name.
      isPartAFile: (_field, type, name) => name !== undefined || (type !== undefined && type !== "text/plain"),
    });
  } catch {
    throw invalidValue("content-type", "multipart/form-data needs a boundary.");
  }
}

/**
 * Reads a form with one file, in the field `file`, to the end of the body. `take` consumes the file and sets the pace: nothing
 * is buffered here. Returns the file's length. Throws the first error.
 */
export async function readForm(
  form: BusboyInstance,
  fileBytes: number,
  body: AsyncIterable<Buffer>,
  take: (file: Readable) => Promise<void>,
  clock: Clock,
): Promise<number> {
  const stopped = new AbortController();
  const { signal } = stopped;
  const stop = (error: unknown) => stopped.abort(error);
  let file: { readonly stream: BusboyFileStream; readonly taken: Promise<void> } | undefined;

  form.on("file", (field, stream) => {
    // A malformed form emits errors after reading has stopped; without a listener one would end the process.
    stream.on("error", () => {});
    if (field !== "file" || file) {
      stream.resume();
      return stop(invalidValue("file", "The form must hold one file, in the field 'file'."));
    }
    stream.on("limit", () => stop(requestTooLarge(fileBytes, "file")));
    file = { stream, taken: take(stream) };
    file.taken.catch(stop);
  });
  form.on("field", (field, _value, _nameTruncated, truncated) => {
    if (field === "file") stop(invalidValue("file", "The field 'file' holds no file: it needs a file name."));
    else if (truncated) stop(invalidValue(field, `The field is over the limit of ${limits.fieldSize} bytes.`));
  });
  const tooMany = () => stop(invalidValue(undefined, "The form has too many parts."));
  form.on("partsLimit", tooMany).on("fieldsLimit", tooMany).on("filesLimit", tooMany);
  form.on("error", () => stop(brokenForm()));
  // Emitted at the closing boundary, which may be long before the end of the body.
  const finished = once(form, "finish", { signal });
  finished.catch(() => {});
  // On some malformed forms the parser never drains and never finishes.
  const withinIdleTimeout = async (event: Promise<unknown>) => {
    const cancel = clock.after(idleTimeoutMs, () => stop(brokenForm()));
    await event.finally(cancel);
  };

  try {
    let received = 0;
    for await (const chunk of body) {
      received += chunk.length;
      if (received > fileBytes + framingBytes) stop(requestTooLarge(fileBytes, "file"));
      signal.throwIfAborted();
      if (!form.write(chunk)) await withinIdleTimeout(once(form, "drain", { signal }));
      signal.throwIfAborted();
    }
    form.end();
    await withinIdleTimeout(finished);
    if (!file) throw invalidValue("file", "The form has no file in the field 'file'.");
    await file.taken;
    if (file.stream.bytesRead === 0) throw invalidValue("file", "The file is empty.");
    return file.stream.bytesRead;
  } catch (error) {
    stop(error);
    file?.stream.destroy(signal.reason as Error);
    await file?.taken.catch(() => {});
    throw signal.reason;
  }
}
