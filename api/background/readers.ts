import type { Response } from "express";
import type { DetachedCalls } from "#detached-calls";
import { isEnded } from "#detached-calls";
import { noCapacity, rateLimited, streamNotResumable } from "#errors";
import { firstEvents, firstWorkerEvent, lastEvent, responsesCodec, skipEvents } from "#formats";
import type { ByteBudget, ByteShare } from "#platform/byte-budget";
import { sleep } from "#platform/clock";
import type { Uses } from "#platform/uses";
import type { EventLogEntry, EventLogName, EventLogs } from "#stored-responses";
import { beginStream, slicesOf, writeSlices } from "../http/answer.ts";
import { type BackgroundView, endedResponse, isBackground } from "./response-text.ts";

interface Deps extends Uses<"clock" | "log"> {
  readonly eventLogs: EventLogs;
  readonly detachedCalls: DetachedCalls;
  /** Budget for what readers have not read yet. */
  readonly memory: ByteBudget;
  readonly pingIntervalMs: number;
}

/** One connection that reads the stream of a response. */
interface Reader {
  readonly res: Response;
  readonly memory: ByteShare;
  /** The number of the last event that was written. */
  last: number;
  /** Unix milliseconds. */
  lastWriteAt: number;
}

/** A response that has readers in this process. One poller reads its log for all of them. */
interface Followed {
  readonly account: string;
  readonly view: BackgroundView;
  readonly readers: Set<Reader>;
  /** Unix milliseconds: the last look at the document of the call, and the last read that had something new. */
  lookedAt: number;
  newAt: number;
  ended: BackgroundView | undefined;
}

interface Reading {
  readonly account: string;
  readonly view: BackgroundView;
  /** The number of the last event that the reader has; -1 if it has none. */
  readonly after: number;
}

/** The pauses between two reads of a log, and those of one that has been silent for `silentMs`. */
const pollMs = { usual: 50, silent: 250 } as const;
/** Entries in one read of a log, and reads in one poll. */
const readCount = 16;
const readsPerPoll = 16;
/** How long a log may be silent before the document of its call is looked at, and the log less often. */
const silentMs = 2_000;
/** The same at the end of the log, if the document has not ended yet. */
const endPollMs = 200;
const maxWaitingOfAccount = 500;
/** The bytes of a text, its string, and the slices that are on their way. */
const copies = 3;

/**
 * The readers of streams in the background in this process. Events come from the log in Redis while the response runs, and
 * from the document of its call afterwards; the first and the last event are always made from that document. A reader who
 * would miss an event is disconnected. A reader who does not read waits without taking memory.
 */
export function createResponseReaders({ eventLogs, detachedCalls, memory, pingIntervalMs, clock, log }: Deps) {
  const followed = new Map<string, Followed>();
  const waitingByAccount = new Map<string, number>();
  let isStopped = false;

  function assertRoom(account: string): void {
    if ((waitingByAccount.get(account) ?? 0) >= maxWaitingOfAccount)
      throw rateLimited(`The account already waits for ${maxWaitingOfAccount} streams and jobs here.`, 5);
  }

  /** Counts a caller who waits, until the connection is done with the response. */
  function count(account: string, res: Response): void {
    const add = (change: 1 | -1) => {
      const waiting = (waitingByAccount.get(account) ?? 0) + change;
      if (waiting > 0) waitingByAccount.set(account, waiting);
      else waitingByAccount.delete(account);
    };
    if (res.closed) return;
    add(1);
    res.once("close", () => add(-1));
  }

  const isReady = ({ res }: Reader): boolean => !res.closed && !res.writableNeedDrain;

  function write(reader: Reader, bytes: Buffer): void {
    const { res } = reader;
    reader.lastWriteAt = clock.now();
    res.write(bytes);
    if (!reader.memory.resize(res.writableLength)) res.destroy();
  }

  /** Writes the events that the reader does not have yet. Disconnects a reader who would miss one. */
  function deliver(
    readers: readonly Reader[],
    { first, last, text }: Extract<EventLogEntry, { kind: "events" }>,
  ): void {
    let whole: Buffer | undefined;
    for (const reader of readers) {
      if (reader.last >= last || !isReady(reader)) continue;
      if (reader.last < first - 1) {
        reader.res.destroy();
        continue;
      }
      const isWhole = reader.last === first - 1;
      write(reader, isWhole ? (whole ??= Buffer.from(text)) : Buffer.from(skipEvents(text, reader.last - first + 1)));
      reader.last = last;
    }
  }

  const reserveIn = (share: ByteShare) => (bytes: number) => {
    if (!share.take(copies * bytes)) throw noCapacity("Too many large responses are being read right now.", 2);
  };

  /** The events of the log in Redis. */
  async function logOf(log: EventLogName, reserve: (bytes: number) => void) {
    let text = "";
    let last = firstWorkerEvent - 1;
    for (let isWhole = false; !isWhole; ) {
      const entries = await eventLogs.read(log, last, readCount);
      if (entries.length === 0 && text === "") throw streamNotResumable();
      for (const entry of entries) {
        if (entry.kind === "over" || (entry.kind === "events" && entry.first > last + 1)) throw streamNotResumable();
        if (entry.kind === "end") return { text, last: entry.number - 1 };
        reserve(entry.text.length);
        text += skipEvents(entry.text, last - entry.first + 1);
        last = entry.last;
      }
      isWhole = entries.length < readCount;
    }
    return { text, last };
  }

  /** The worker's events, and the number of the last one. Throws 409 if they are not kept. */
  async function eventsOf(account: string, { requestId, startedAt }: BackgroundView, share: ByteShare) {
    const reserve = reserveIn(share);
    const stored = await detachedCalls.events(account, requestId, reserve);
    if (stored) return stored;
    if (!startedAt) return { text: "", last: firstWorkerEvent - 1 };
    // Its worker died.
    return logOf({ account, requestId }, reserve);
  }

  /** Everything that the reader of an ended response has not got. */
  async function restOf(account: string, view: BackgroundView, after: number, share: ByteShare): Promise<Buffer> {
    const { text, last } = await eventsOf(account, view, share);
    if (after > last) return Buffer.alloc(0);
    const ended = await endedResponse({ detachedCalls }, account, view, reserveIn(share));
    if (!ended) throw streamNotResumable();
    const rest = skipEvents(text, Math.max(0, after - firstWorkerEvent + 1));
    return Buffer.from(
      firstEvents(view.background.response, after) + rest + lastEvent(last + 1, ended.status, ended.json),
    );
  }

  /** Ends the streams of a response that has ended, for the readers who have read everything that was written to them. */
  async function finish({ account, readers }: Followed, view: BackgroundView): Promise<void> {
    const rests = new Map<number, Promise<Buffer>>();
    for (const reader of readers) {
      if (!isReady(reader)) continue;
      readers.delete(reader);
      const rest = rests.get(reader.last) ?? restOf(account, view, reader.last, reader.memory);
      rests.set(reader.last, rest);
      try {
        writeSlices(reader.res, slicesOf([await rest]));
      } catch (error) {
        log.info(
          { err: (error as Error).message, requestId: view.requestId },
          "a stream ended without its last events",
        );
        reader.res.destroy();
      }
    }
  }

  async function lookAtCall(response: Followed): Promise<void> {
    response.lookedAt = clock.now();
    const view = await detachedCalls.find(response.account, response.view.requestId);
    if (!isBackground(view)) for (const { res } of response.readers) res.destroy();
    else if (isEnded(view)) {
      response.ended = view;
      await finish(response, view);
    }
  }

  /** The log has its end, which follows that of the document. */
  async function end(response: Followed): Promise<void> {
    if (response.ended) await finish(response, response.ended);
    else if (clock.now() - response.lookedAt >= endPollMs) await lookAtCall(response);
  }

  /** Returns true if the log had something new. */
  async function readLog(response: Followed): Promise<boolean> {
    const { account, view, readers } = response;
    const log = { account, requestId: view.requestId };
    let isNew = false;
    for (let read = 0; read < readsPerPoll; read++) {
      const ready = [...readers].filter(isReady);
      if (ready.length === 0) return true;
      const from = Math.max(firstWorkerEvent - 1, Math.min(...ready.map(({ last }) => last)));
      const entries = await eventLogs.read(log, from, readCount);
      isNew ||= entries.length > 0;
      for (const entry of entries) {
        if (entry.kind === "events") deliver(ready, entry);
        else if (entry.kind === "over") for (const { res } of readers) res.destroy();
        else await end(response);
      }
      if (entries.length < readCount) return isNew;
    }
    return isNew;
  }

  async function poll(response: Followed): Promise<void> {
    const isNew = await readLog(response).catch((error: Error) => {
      log.warn({ err: error.message }, "the events of a response could not be read");
      return false;
    });
    const now = clock.now();
    if (isNew) response.newAt = now;
    else if (now - response.lookedAt >= silentMs) await lookAtCall(response);
    for (const reader of response.readers)
      if (isReady(reader) && now - reader.lastWriteAt >= pingIntervalMs)
        write(reader, Buffer.from(responsesCodec.ping));
  }

  async function follow(key: string, response: Followed): Promise<void> {
    while (response.readers.size > 0 && !isStopped) {
      await poll(response).catch((error: Error) =>
        log.warn({ err: error.message, requestId: response.view.requestId }, "a response could not be followed"),
      );
      await sleep(clock, clock.now() - response.newAt < silentMs ? pollMs.usual : pollMs.silent);
    }
    if (followed.get(key) === response) followed.delete(key);
  }

  function join(account: string, view: BackgroundView, reader: Reader): void {
    const key = `${account} ${view.requestId}`;
    let response = followed.get(key);
    if (!response || response.readers.size === 0) {
      response = { account, view, readers: new Set(), lookedAt: 0, newAt: clock.now(), ended: undefined };
      followed.set(key, response);
      response.readers.add(reader);
      void follow(key, response);
    } else response.readers.add(reader);
    reader.res.once("close", () => response.readers.delete(reader));
  }

  /** Throws 409 if events after this number are lost, as far as is known now. */
  async function assertKept(account: string, { requestId }: BackgroundView, after: number): Promise<void> {
    const from = Math.max(after, firstWorkerEvent - 1);
    const [next] = await eventLogs.read({ account, requestId }, from, 1).catch((error: unknown) => {
      throw noCapacity("The stream cannot be read right now.", 1, error);
    });
    if (next?.kind === "over" || (next?.kind === "events" && next.first > from + 1)) throw streamNotResumable();
  }

  function begin(res: Response): void {
    beginStream(res);
    res.flushHeaders();
  }

  /** Streams a response. Throws before anything is written: 409 if its events are not kept, 429, 503. */
  async function stream(res: Response, { account, view, after }: Reading): Promise<void> {
    if (!view.background.keepsEvents) throw streamNotResumable("It was created without stream: true.");
    if (res.closed) return;
    const share = memory.share(account);
    count(account, res);
    res.once("close", () => share.close());
    const reader = { res, memory: share, last: after, lastWriteAt: clock.now() };
    if (isEnded(view)) {
      const rest = await restOf(account, view, after, share);
      begin(res);
      return writeSlices(res, slicesOf([rest]));
    }
    if (after >= 0) await assertKept(account, view, after);
    if (res.closed) return;
    begin(res);
    const first = firstEvents(view.background.response, after);
    if (first) write(reader, Buffer.from(first));
    reader.last = Math.max(after, firstWorkerEvent - 1);
    // The stream can be read on from another instance.
    if (isStopped) res.destroy();
    else join(account, view, reader);
  }

  return {
    /** Throws 429 for an account that waits too often. */
    assertRoom,

    /** Counts a caller who waits for the end of a job as a reader. Throws 429 for an account that waits too often. */
    wait(res: Response, account: string): void {
      assertRoom(account);
      count(account, res);
    },

    /** Streams a response for another reader. Throws 429 for an account that waits too often, and like `stream`. */
    async read(res: Response, reading: Reading): Promise<void> {
      assertRoom(reading.account);
      await stream(res, reading);
    },

    stream,

    /** Disconnects all readers, and each later one after its first events. */
    stop(): void {
      isStopped = true;
      for (const { readers } of followed.values()) for (const { res } of readers) res.destroy();
    },
  };
}

export type ResponseReaders = ReturnType<typeof createResponseReaders>;
