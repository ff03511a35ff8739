import type { Response } from "express";
import { noCapacity, ServiceError } from "#errors";
import type { Uses } from "#platform/uses";
import { allowPauses } from "./connections.ts";
import { localsOf } from "./headers.ts";

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

/**
 * Readers who take nothing for this long are cut. It is longer than for calls, because a player with a full buffer, or a
 * program that works at each line of a result, reads seldom.
 */
const pauseMs = 600_000;

interface Sending extends Uses<"clock" | "log"> {
  readonly res: Response;
  /** The id of the file, for the log. */
  readonly file: string;
  /** Throws 503 after the drain. Otherwise the drain waits until the returned function is called. */
  readonly arrive: () => () => void;
}

/** Sends a file. The signal aborts when the caller disconnects or has read nothing for ten minutes, which is no failure. */
export async function sendStored(sending: Sending, send: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const { res, file, arrive, log } = sending;
  const disconnected = new AbortController();
  res.once("close", () => disconnected.abort());
  const leave = arrive();
  allowPauses(res, pauseMs);
  try {
    await send(disconnected.signal);
  } catch (error) {
    if (disconnected.signal.aborted) return;
    if (!res.headersSent) throw error;
    // Cut the connection, so that no client takes the part for the whole file.
    log.warn({ err: error, requestId: localsOf(res).requestId, file }, "a file could not be sent completely");
    res.destroy();
  } finally {
    leave();
  }
}
