import { type FileHandle, open, unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomBase62 } from "./ids.ts";
import { passing } from "./passing.ts";

/** A file in the temporary folder, for what has to be known whole before it goes on: its length, say. */
export interface Spool {
  /** Appends, at the disk's pace. */
  write(chunk: Buffer): Promise<void>;
  /** All that was written, from its beginning. */
  read(): AsyncIterable<Buffer>;
}

const chunkBytes = 64 * 1024;

/**
 * For as long as `use` runs. The file has no name: nothing stays, whatever happens to the process. `onFailure` makes the
 * error to throw of what the disk refuses.
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
      read: () => chunksOf(file),
    });
  } finally {
    await file.close();
  }
}

/** No stream of the handle: closing it would wait for the stream's own end. */
async function* chunksOf(file: FileHandle): AsyncGenerator<Buffer, void, undefined> {
  for (let at = 0; ; ) {
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafeSlow(chunkBytes), 0, chunkBytes, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    passing(bytesRead);
    yield buffer.subarray(0, bytesRead);
  }
}
