import { createHash, type Hash } from "node:crypto";
import type { Readable } from "node:stream";
import type { Request } from "express";
import { invalidValue, lengthRequired, noCapacity, requestTooLarge, unsupportedMediaType } from "#errors";
import type { ByteShare } from "#platform/byte-budget";
import type { Clock } from "#platform/clock";
import { passing } from "#platform/passing";
import { withSpool } from "#platform/spool";
import { createForm, framingBytes, readForm } from "./form.ts";

/** 95 MB: of a raw body, or of the file in a form. */
const uploadLimitBytes = 95 * 1024 * 1024;
const silenceMs = 60_000;

/** A file as it comes, with its length. */
export interface Source {
  readonly bytes: number;
  readonly body: AsyncIterable<Buffer>;
}

/** The file that a request brings. Its headers are checked; not a byte of it has been read. */
export interface UploadBody {
  /** What the headers say of its length. */
  readonly maxBytes: number;
  /** Reads it once, for `use`. */
  read<T>(use: (source: Source) => Promise<T>): Promise<T>;
  /** Reads it once, keeping nothing but its hash. */
  digest(): Promise<{ readonly bytes: number; readonly hash: string }>;
}

export const mediaTypeOf = (req: Request) => (req.headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase();

/** `share` is charged for what has to be kept on the way. Throws 411, 413, 415, or 400 for headers that no upload can have. */
export function uploadBody(req: Request, clock: Clock, share: ByteShare): UploadBody {
  if (!/^(identity)?$/i.test(req.headers["content-encoding"]?.trim() ?? ""))
    throw unsupportedMediaType("An upload is sent without a content encoding.", "content-encoding");
  return mediaTypeOf(req) === "multipart/form-data" ? formBody(req, clock, share) : rawBody(req, clock);
}

function rawBody(req: Request, clock: Clock): UploadBody {
  const { "content-length": length } = req.headers;
  if (length === undefined) throw lengthRequired();
  const bytes = Number(length);
  if (bytes > uploadLimitBytes) throw requestTooLarge(uploadLimitBytes);
  if (bytes === 0) throw invalidValue(undefined, "The body is empty; a file is expected.");
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
    // Storage wants the length first, and a form does not tell it.
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

const noDisk = (cause: unknown) => noCapacity("The temporary storage for forms is full or away.", 5, cause);
const brokenOff = () => invalidValue(undefined, "The body broke off before its end.");

/**
 * A request's body, at the reader's pace. Unlike the request's own iterator it leaves the connection open when the reader
 * stops early, so that an answer can still be sent; and a caller who stays silent is given up.
 */
async function* bytesOf(req: Request, clock: Clock): AsyncGenerator<Buffer> {
  const chunks = req.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      const { promise: silence, reject } = Promise.withResolvers<never>();
      const cancel = clock.after(silenceMs, () => reject(brokenOff()));
      const next = await Promise.race([chunks.next(), silence])
        .catch(() => Promise.reject(brokenOff()))
        .finally(cancel);
      // The caller has left, or sent more than was announced, which breaks HTTP: nobody would get the answer.
      if (next.done && req.socket.destroyed) throw brokenOff();
      if (next.done) return;
      const chunk = next.value as Buffer;
      passing(chunk.length);
      yield chunk;
    }
  } finally {
    void chunks.return?.();
  }
}

/** The same source; `hash` is fed as it is read. */
export function hashed({ bytes, body }: Source, hash: Hash): Source {
  return { bytes, body: feed(body, hash) };
}

async function* feed(body: AsyncIterable<Buffer>, hash: Hash): AsyncGenerator<Buffer> {
  for await (const chunk of body) {
    hash.update(chunk);
    yield chunk;
  }
}
