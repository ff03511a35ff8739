import { Readable } from "node:stream";
import { GetObjectCommand, PutObjectCommand, type S3Client } from "@aws-sdk/client-s3";
import type { Clock } from "#platform/clock";
import { isErrorNamed, storageUnavailable } from "./errors.ts";

interface Deps {
  /** A client without timeouts: the idle timer replaces them. */
  readonly s3: S3Client;
  readonly bucket: string;
  readonly clock: Clock;
}

export interface SentObject {
  readonly key: string;
  readonly contentType: string;
  readonly bytes: number;
  readonly chunks: AsyncIterable<Buffer>;
  readonly signal?: AbortSignal | undefined;
}

export interface OpenedObject {
  /** Of the whole object. */
  readonly size: number;
  /** Must be read to its end, or `signal` aborted: otherwise the connection stays open. */
  readonly body: AsyncIterable<Buffer>;
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

/** Streams at the pace of storage, so that no object is ever whole in memory. */
export async function send({ s3, bucket: Bucket, clock }: Deps, object: SentObject): Promise<string> {
  const { key: Key, contentType: ContentType, bytes: ContentLength, chunks } = object;
  const idle = createIdleTimer(clock, object.signal);
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
    const put = new PutObjectCommand({ Bucket, Key, Body, ContentType, ContentLength });
    return (await s3.send(put, { abortSignal: idle.signal })).ETag ?? "";
  } catch (error) {
    idle.signal.throwIfAborted();
    throw storageUnavailable(error);
  } finally {
    idle.stop();
    Body.destroy();
  }
}

export async function open(
  { s3, bucket: Bucket, clock }: Deps,
  object: { key: string; range: { start: number; end: number } | undefined; signal?: AbortSignal },
): Promise<OpenedObject | undefined> {
  const idle = createIdleTimer(clock, object.signal);
  const { key: Key, range } = object;
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
