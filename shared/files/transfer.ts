import { Readable } from "node:stream";
import { GetObjectCommand, PutObjectCommand, type S3Client } from "@aws-sdk/client-s3";
import { noCapacity } from "#errors";
import type { Clock } from "#platform/clock";
import type { Uses } from "#platform/uses";

export const storageUnavailable = (cause: unknown) =>
  noCapacity("File storage cannot be reached right now; nothing was charged.", 5, cause);

export const isErrorNamed = (error: unknown, ...names: readonly string[]): boolean =>
  error instanceof Error && names.includes(error.name);

interface SentObject {
  readonly key: string;
  readonly contentType: string;
  readonly bytes: number;
  readonly chunks: AsyncIterable<Buffer>;
  readonly signal?: AbortSignal | undefined;
}

/** Idle timeout for S3 transfers. */
const idleTimeoutMs = 15_000;

/** Runs only while this side waits for storage, not while the caller is slow. */
function createIdleTimer(clock: Clock, signal: AbortSignal | undefined) {
  const controller = new AbortController();
  let stop = () => {};
  return {
    signal: signal ? AbortSignal.any([controller.signal, signal]) : controller.signal,
    abort: (reason: unknown) => controller.abort(reason),
    start() {
      stop();
      const timedOut = new Error(`storage was idle for ${idleTimeoutMs} ms`);
      stop = clock.after(idleTimeoutMs, () => controller.abort(storageUnavailable(timedOut)));
    },
    stop: () => stop(),
  };
}

/** `s3` is a client without timeouts, which the idle timer replaces. */
export function createTransfers({ s3, bucket: Bucket, clock }: Uses<"clock"> & { s3: S3Client; bucket: string }) {
  /**
   * Streams an object of known size at the pace of storage, so that an object is never completely in memory. Throws
   * what `chunks` throws. Resolves to the ETag.
   */
  async function send({ key: Key, contentType: ContentType, bytes, chunks, signal }: SentObject): Promise<string> {
    const idle = createIdleTimer(clock, signal);
    async function* paced() {
      idle.stop();
      try {
        for await (const chunk of chunks) {
          idle.start();
          yield chunk;
          idle.stop();
        }
        idle.start();
      } catch (error) {
        // The failure of a piped stream does not end the request.
        idle.abort(error);
      }
    }
    const Body = Readable.from(paced(), { objectMode: false });
    try {
      idle.start();
      const put = new PutObjectCommand({ Bucket, Key, Body, ContentType, ContentLength: bytes });
      return (await s3.send(put, { abortSignal: idle.signal })).ETag ?? "";
    } catch (error) {
      idle.signal.throwIfAborted();
      throw storageUnavailable(error);
    } finally {
      idle.stop();
      Body.destroy();
    }
  }

  /**
   * Returns the size of the whole object and the bytes of the range, or undefined if there is no such object. The body
   * must be read to its end or `signal` aborted, or the connection stays open.
   */
  async function open(Key: string, range: { start: number; end: number } | undefined, signal?: AbortSignal) {
    const idle = createIdleTimer(clock, signal);
    const Range = range && `bytes=${range.start}-${range.end}`;
    idle.start();
    try {
      const got = await s3.send(new GetObjectCommand({ Bucket, Key, Range }), { abortSignal: idle.signal });
      const size = Number(got.ContentRange?.split("/")[1] ?? got.ContentLength);
      return { size, body: read(got.Body as Readable, idle) };
    } catch (error) {
      if (isErrorNamed(error, "NoSuchKey", "NotFound")) return undefined;
      idle.signal.throwIfAborted();
      throw storageUnavailable(error);
    } finally {
      idle.stop();
    }
  }

  return { send, open };
}

async function* read(body: Readable, idle: ReturnType<typeof createIdleTimer>): AsyncGenerator<Buffer> {
  try {
    idle.start();
    for await (const chunk of body) {
      idle.stop();
      yield chunk as Buffer;
      idle.start();
    }
  } catch (error) {
    idle.signal.throwIfAborted();
    throw storageUnavailable(error);
  } finally {
    idle.stop();
    body.destroy();
  }
}
