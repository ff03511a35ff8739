import { type FileHandle, open, unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomBase62 } from "./ids.ts";

/** A temporary file, for content whose length or type must be known before it is sent. */
export interface Spool {
  /** Appends a chunk. Resolves when it is written. */
  write(chunk: Buffer): Promise<void>;
  /** Reads everything written, or a part of it. `end` is exclusive. */
  read(start?: number, end?: number): AsyncIterable<Buffer>;
}

const chunkBytes = 64 * 1024;

/**
 * The spool exists while `use` runs. The file is unlinked immediately, so nothing remains even if the process is
 * killed. `onFailure` converts a disk error to the error to throw.
 */
export async function withSpool<T>(
  onFailure: (cause: unknown) => Error,
  use: (spool: Spool) => Promise<T>,
): Promise<T> {
  const failed = (cause: unknown): never => {
    throw onFailure(cause);
  };
  const path = join(tmpdir(), `inference-${randomBase62(24)}`);
  const file = await open(path, "wx+", 0o600).catch(failed);
  try {
    await unlink(path).catch(failed);
    return await use({
      write: (chunk) => file.appendFile(chunk).catch(failed),
      read: (start = 0, end = Number.POSITIVE_INFINITY) => chunksOf(file, start, end),
    });
  } finally {
    await file.close();
  }
}

/** A stream of the handle is not used, because closing the handle would wait for the stream's end. */
async function* chunksOf(file: FileHandle, start: number, end: number): AsyncGenerator<Buffer, void, undefined> {
  for (let at = start; at < end; ) {
    const length = Math.min(chunkBytes, end - at);
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafeSlow(length), 0, length, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}
