import { Readable } from "node:stream";
import { GetObjectCommand, PutObjectCommand, type S3Client } from "@aws-sdk/client-s3";
import type { Clock } from "#platform/clock";
import { isNamed, storageUnavailable } from "./unavailable.ts";

interface Deps {
  /** Of the manner `transfers`: the watch is here. */
  readonly s3: S3Client;
  readonly bucket: string;
  readonly clock: Clock;
}

export interface Sent {
  readonly key: string;
  readonly contentType: string;
  readonly bytes: number;
  readonly chunks: AsyncIterable<Buffer>;
  readonly signal?: AbortSignal | undefined;
}

export interface Opened {
  /** Of the whole object. */
  readonly size: number;
  /** To be read, or `signal` to be aborted: else the connection stays. */
  readonly body: AsyncIterable<Buffer>;
}

/** Storage that takes nothing, or gives nothing, for so long while it is its turn is away. */
const silentMs = 15_000;

/** Time counts only while storage is waited for, not while the other side is. */
function createWatch(clock: Clock, signal: AbortSignal | undefined) {
  const giveUp = new AbortController();
  let stop = () => {};
  return {
    signal: signal ? AbortSignal.any([giveUp.signal, signal]) : giveUp.signal,
    giveUp: (reason: unknown) => giveUp.abort(reason),
    start() {
      stop();
      const silent = () => giveUp.abort(storageUnavailable(new Error(`storage was silent for ${silentMs} ms`)));
      stop = clock.after(silentMs, silent);
    },
    stop: () => stop(),
  };
}

/** Never whole in memory: what storage does not take is not asked for. */
export async function send({ s3, bucket: Bucket, clock }: Deps, object: Sent): Promise<string> {
  const { key: Key, contentType: ContentType, bytes: ContentLength, chunks } = object;
  const watch = createWatch(clock, object.signal);
  async function* paced() {
    watch.stop();
    try {
      for await (const chunk of chunks) {
        watch.start();
        yield chunk;
        watch.stop();
      }
      watch.start();
    } catch (error) {
      // A stream that breaks does not end the request that it is piped into.
      watch.giveUp(error);
    }
  }
  const Body = Readable.from(paced(), { objectMode: false });
  try {
    watch.start();
    const put = new PutObjectCommand({ Bucket, Key, Body, ContentType, ContentLength });
    return (await s3.send(put, { abortSignal: watch.signal })).ETag ?? "";
  } catch (error) {
    watch.signal.throwIfAborted();
    throw storageUnavailable(error);
  } finally {
    watch.stop();
    Body.destroy();
  }
}

export async function open(
  { s3, bucket: Bucket, clock }: Deps,
  object: { key: string; range: { start: number; end: number } | undefined; signal: AbortSignal },
): Promise<Opened | undefined> {
  const watch = createWatch(clock, object.signal);
  const { key: Key, range } = object;
  const Range = range && `bytes=${range.start}-${range.end}`;
  watch.start();
  try {
    const got = await s3.send(new GetObjectCommand({ Bucket, Key, Range }), { abortSignal: watch.signal });
    const size = Number(got.ContentRange?.split("/")[1] ?? got.ContentLength);
    return { size, body: read(got.Body as Readable, watch) };
  } catch (error) {
    if (isNamed(error, "NoSuchKey", "NotFound")) return undefined;
    watch.signal.throwIfAborted();
    throw storageUnavailable(error);
  } finally {
    watch.stop();
  }
}

async function* read(body: Readable, watch: ReturnType<typeof createWatch>): AsyncGenerator<Buffer> {
  try {
    watch.start();
    for await (const chunk of body) {
      watch.stop();
      yield chunk as Buffer;
      watch.start();
    }
  } catch (error) {
    watch.signal.throwIfAborted();
    throw storageUnavailable(error);
  } finally {
    watch.stop();
    body.destroy();
  }
}
