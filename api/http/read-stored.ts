import { noCapacity, ServiceError } from "#errors";

export interface Range {
  /** Both ends are inclusive. */
  readonly start: number;
  readonly end: number;
}

export type Open = (range: Range | undefined) => Promise<AsyncIterable<Buffer>>;

/**
 * Reads from `start` to `end`. Storage closes a connection that a slow caller, such as a player with a full buffer, does not
 * read. Reading resumes where it stopped, as long as every attempt makes progress.
 */
async function* readStored(open: Open, range: Range | undefined, start: number, end: number): AsyncGenerator<Buffer> {
  for (let at = start; at <= end; ) {
    const before = at;
    try {
      for await (const chunk of await open(at === start ? range : { start: at, end })) {
        at += chunk.length;
        yield chunk;
      }
      if (at === before) throw noCapacity("File storage has only a part of this file.");
    } catch (error) {
      if (at === before)
        throw error instanceof ServiceError ? error : noCapacity("File storage is unavailable.", 5, error);
    }
  }
}

/**
 * Starts to read from `start` to `end`. Resolves once the first chunk is there, so that a failure of storage can still be
 * answered with a status, and to undefined if there is nothing to read.
 */
export async function beginReading(...range: Parameters<typeof readStored>) {
  const chunks = readStored(...range);
  const first = await chunks.next();
  return first.done ? undefined : prepend(first.value, chunks);
}

async function* prepend(first: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  yield* rest;
}
