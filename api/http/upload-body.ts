import { createHash, type Hash } from "node:crypto";
import type { Request } from "express";
import { invalidValue, lengthRequired, noCapacity, requestTooLarge, unsupportedMediaType } from "#errors";
import type { ByteShare } from "#platform/byte-budget";
import type { Clock } from "#platform/clock";
import { withSpool } from "#platform/spool";
import { createForm, framingBytes, idleTimeoutMs, readForm } from "./form.ts";

/** 95 MB, for a raw body or the file in a form. */
const uploadLimitBytes = 95 * 1024 * 1024;

const uploadRules = { fileBytes: uploadLimitBytes, formBytes: uploadLimitBytes, files: { file: 1 } };

/** A file as it arrives, with its length. */
interface Source {
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
    digest: () => digestOf((take) => take(bytesOf(req, clock)).then(() => bytes)),
  };
}

function formBody(req: Request, clock: Clock, share: ByteShare): UploadBody {
  const length = Number(req.headers["content-length"] ?? uploadLimitBytes);
  if (length > uploadLimitBytes + framingBytes) throw requestTooLarge(uploadLimitBytes, "file");
  const form = createForm(req.headers["content-type"] ?? "", uploadRules);
  const parse = async (take: Take): Promise<number> => {
    const [file] = await readForm(form, uploadRules, bytesOf(req, clock), take, clock);
    return file?.bytes ?? 0;
  };
  return {
    maxBytes: Math.min(Math.max(length, 1), uploadLimitBytes),
    // Spooled, because storage requires the length first and a form does not state it.
    read: (use) =>
      withSpool(noDisk, async (spool) => {
        let written = 0;
        try {
          const bytes = await parse(async (file) => {
            for await (const chunk of file) {
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
    digest: () => digestOf(parse),
  };
}

type Take = (file: AsyncIterable<Buffer>) => Promise<void>;

/** Hashes the file that `receive` passes on. `receive` resolves to its length. */
async function digestOf(receive: (take: Take) => Promise<number>) {
  const hash = createHash("sha256");
  const bytes = await receive(async (file) => {
    for await (const chunk of file) hash.update(chunk);
  });
  return { bytes, hash: hash.digest("base64url") };
}

export const noDisk = (cause: unknown) =>
  noCapacity("The temporary storage for forms is full or unavailable.", 5, cause);
const brokenOff = () => invalidValue(undefined, "The body ended prematurely.");
const idle = () => invalidValue(undefined, "The body did not arrive: no data was received for a minute.");

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

/** Wraps a source so that reading it updates `hash`. */
export const hashed = ({ bytes, body }: Source, hash: Hash): Source => ({ bytes, body: feed(body, hash) });

async function* feed(body: AsyncIterable<Buffer>, hash: Hash): AsyncGenerator<Buffer> {
  for await (const chunk of body) {
    hash.update(chunk);
    yield chunk;
  }
}
