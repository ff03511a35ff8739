import { sleep } from "#platform/clock";
import { onReconnect, type RedisClient, reconnectTogether } from "#platform/redis";
import type { Uses } from "#platform/uses";
import {
  cancelledKey,
  channelOf,
  type Frame,
  fromField,
  type Notice,
  type Pace,
  registrationMs,
  replyKey,
  silenceMs,
} from "./frames.ts";

/** Longer than the second between two checks by a worker. */
const leavingSeconds = 3;
const renewMs = 1_000;
const readCount = 64;
const blockMs = 5_000;
const trimMs = 250;
const retryDelayMs = 100;
/** After a note in MongoDB, no instance counts as dead for twice this time. */
const confirmedMs = 10_000;

/**
 * Renews the registration, or recreates a missing stream. The stream's ids continue after the last one read, regardless
 * of the clock of a server that took over. A server that took over with an older stream may have assigned smaller ids,
 * whose entries XREAD would never return, so the script returns them. It also reports whether the stream was missing.
 */
const renewScript = `
local key, seconds, last, following = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local missing, missed = 0, {}
if redis.call("EXPIRE", key, seconds) == 0 then
  redis.call("XADD", key, "MAXLEN", "0", following, "lease", "1")
  redis.call("EXPIRE", key, seconds)
  missing = 1
elseif last ~= "0-0" and type(redis.pcall("XADD", key, last, "lease", "1")) == "string" then
  missed = redis.call("XRANGE", key, "-", "(" .. last)
  redis.call("XTRIM", key, "MAXLEN", "0")
end
return {missing, missed}`;

/** Returns the next possible id. */
function after(id: string): string {
  const [ms, count] = id.split("-");
  return `${ms}-${Number(count) + 1}`;
}

/** The API's end of the reply protocol: one stream for all replies to this instance. */
export function createReplyReader(
  deps: Uses<"clock" | "log"> & {
    /** Random at each start. */
    instance: string;
    /** After this time without a renewal, an instance counts as dead. */
    apiTimeoutMs: number;
    /** A separate connection, because blocking reads occupy it. */
    reader: RedisClient;
    commands: RedisClient;
  },
) {
  const { instance, apiTimeoutMs, reader, commands, clock, log } = deps;
  /** Shorter than the time after which this instance counts as dead, by enough for a call to reach its queue. */
  const longestGapMs = (2 / 3) * apiTimeoutMs;
  const key = replyKey(instance);
  const waiting = new Map<string, (frame: Frame) => void>();
  const strays = new Map<string, number>();
  /** Markers in the order in which they were written. */
  const markers = new Map<number, () => void>();
  let markersWritten = 0;
  let stopped = false;
  let lastId = "0-0";
  let trimmedTo = lastId;
  let trimmedAt = 0;
  let loop: Promise<void> | undefined;
  let renewing: Promise<boolean> | undefined;
  /** Set once the stream has been renewed on the server that the reader is connected to. */
  let isSettled = false;
  let stopRenewing = () => {};
  let onDataLoss = () => {};
  let unfollow: (() => void)[] = [];
  /** The last renewal, and the start of the period without a gap over `longestGapMs`, by the monotonic clock. */
  let renewedAt = Number.NEGATIVE_INFINITY;
  let renewedSince = 0;
  /** No other process takes this instance for dead before this time, by the monotonic clock. */
  let aliveUntil = Number.NEGATIVE_INFINITY;
  let confirm = async () => {};
  /** Set while this instance finds out whether it has counted as dead. No frame is handed over meanwhile. */
  let lapse: Promise<void> | undefined;

  async function renew(): Promise<void> {
    const args = [registrationMs / 1_000, lastId, after(lastId)];
    const sentAt = performance.now();
    const answer = await commands.eval(renewScript, 1, key, ...args);
    const [missing, missed] = answer as [0 | 1, [id: string, fields: string[]][]];
    await checkLapse();
    // While the stream was missing, others considered this instance dead, however briefly.
    if (missing || sentAt - renewedAt > longestGapMs) renewedSince = sentAt;
    renewedAt = Math.max(renewedAt, sentAt);
    extend(sentAt + longestGapMs);
    for (const [, fields] of missed) handOverAll(fields);
    if (missing) onDataLoss();
  }

  function extend(until: number): void {
    aliveUntil = Math.max(aliveUntil, until);
  }

  /**
   * After a pause of this process, its calls may have been refunded: resolves once that is known, and they have ended. Frames
   * that are handed over then find no call.
   */
  async function checkLapse(): Promise<void> {
    while (lapse || performance.now() > aliveUntil) {
      const askedAt = performance.now();
      lapse ??= confirm()
        .then(() => extend(askedAt + confirmedMs))
        .finally(() => {
          lapse = undefined;
        });
      await lapse;
    }
  }

  function renewSoon(): Promise<boolean> {
    renewing = renew().then(
      () => true,
      (error: Error) => {
        log.warn({ err: error.message }, "the registration of the reply stream could not be renewed");
        return false;
      },
    );
    return renewing;
  }

  /** The registration may have expired during the outage, so it is renewed immediately. */
  const onCommandsReady = () => {
    isSettled = false;
    void renewSoon();
  };
  const onReaderReady = () => {
    isSettled = false;
    void renewSoon().then((renewed) => {
      isSettled = renewed;
    });
  };

  /**
   * Notifies the workers that a call has ended or that its caller has disconnected. A job that begins within `ttlMs`
   * still sees the notice.
   */
  const notify = async (notice: Notice, requestId: string, ttlMs: number): Promise<void> => {
    // The key is set first, so that a worker that subscribes between the two commands finds it. No pipeline, because it
    // would resolve even when commands fail.
    await Promise.all([
      commands.set(cancelledKey(requestId), notice, "PX", Math.max(1_000, Math.ceil(ttlMs))),
      commands.publish(channelOf[notice], requestId),
    ]);
  };

  /** Cancels, at most once a second, a call that a worker still runs although nothing here waits for it. */
  function cancelStray(requestId: string): void {
    const now = clock.now();
    if (now - (strays.get(requestId) ?? 0) < 1_000) return;
    if (strays.size > 10_000) strays.clear();
    strays.set(requestId, now);
    notify("cancelled", requestId, 60_000).catch((error: Error) =>
      log.warn({ err: error.message, requestId }, "a call could not be cancelled"),
    );
  }

  function handOverAll(fields: readonly string[]): void {
    for (let at = 0; at + 1 < fields.length; at += 2) handOver(fields[at] as string, fields[at + 1] as string);
  }

  /** Earlier frames were handed over or lost with Redis's data, so nothing waits for them any longer. */
  function reachMarker(reached: number): void {
    for (const [marker, onReached] of markers) {
      if (marker > reached) return;
      onReached();
    }
  }

  function handOver(name: string, value: string): void {
    try {
      if (name === "marker") return reachMarker(Number(value));
      const frame = fromField(name, value);
      if (!frame) return;
      const onFrame = waiting.get(frame.requestId);
      if (onFrame) onFrame(frame);
      else if (frame.kind === "chunk") cancelStray(frame.requestId);
    } catch (error) {
      log.error({ err: error }, "a frame of a reply could not be processed");
    }
  }

  /**
   * Trims only entries that were handed over, and only once the stream is settled, because a server that took over may
   * have older, unread ids.
   */
  function trim(): void {
    const now = clock.now();
    if (!isSettled || lastId === trimmedTo || now - trimmedAt < trimMs) return;
    trimmedTo = lastId;
    trimmedAt = now;
    commands.xtrim(key, "MINID", after(lastId)).catch(() => {
      trimmedTo = "";
    });
  }

  async function read(): Promise<void> {
    while (!stopped) {
      try {
        const answer = await reader.xread("COUNT", readCount, "BLOCK", blockMs, "STREAMS", key, lastId);
        // Entries found by a renewal were written before these.
        await renewing;
        for (const [, entries] of answer ?? [])
          for (const [id, fields] of entries) {
            if (lapse || performance.now() > aliveUntil) await checkLapse();
            lastId = id;
            handOverAll(fields);
          }
        trim();
      } catch (error) {
        if (stopped) return;
        log.warn({ err: (error as Error).message }, "replies could not be read");
        await sleep(clock, retryDelayMs);
      }
    }
  }

  return {
    instance,
    /** This instance's registration. Monotonic milliseconds. */
    registration: {
      instance,
      since: () => (performance.now() - renewedAt <= longestGapMs ? renewedSince : undefined),
      renew,
    },
    /**
     * Registers a callback for when the registration has lapsed, so that this instance may count as dead. It resolves once
     * that is known.
     */
    onLapse(listener: () => Promise<void>): void {
      confirm = listener;
    },
    /** Registers a callback for when Redis has lost the reply stream, and possibly all of its other data. */
    onDataLoss(listener: () => void): void {
      onDataLoss = listener;
    },
    /** Creates the reply stream and starts reading it. */
    async start(): Promise<void> {
      await renew();
      isSettled = true;
      stopRenewing = clock.every(renewMs, () => void renewSoon());
      unfollow = [
        reconnectTogether(commands, reader),
        onReconnect(commands, onCommandsReady),
        onReconnect(reader, onReaderReady),
      ];
      loop = read();
    },
    /** Registers the receiver of a request's frames, before the job is enqueued. Returns a function that stops it. */
    expect(requestId: string, onFrame: (frame: Frame) => void): () => void {
      waiting.set(requestId, onFrame);
      return () => {
        if (waiting.get(requestId) === onFrame) waiting.delete(requestId);
      };
    },
    notify,
    /** Asks the worker of a call to pause or resume writing frames. A pause must be repeated within `pauseMs`. */
    pace: async (requestId: string, pace: Pace): Promise<void> => {
      await commands.publish(pace, requestId);
    },
    /**
     * Resolves when everything written before this call has been handed over, as far as Redis has it. Rejects while
     * Redis cannot be written.
     */
    async caughtUp(): Promise<void> {
      const marker = markersWritten++;
      const { promise, resolve } = Promise.withResolvers<void>();
      markers.set(marker, resolve);
      try {
        await commands.xadd(key, "*", "marker", marker);
        await promise;
      } finally {
        markers.delete(marker);
      }
    },
    /** Returns false if this or another instance counts as dead. */
    instanceLives: async (other: string): Promise<boolean> =>
      silenceMs(await commands.pttl(replyKey(other))) < apiTimeoutMs,
    async stop(): Promise<void> {
      stopped = true;
      stopRenewing();
      for (const stop of unfollow) stop();
      // An empty stream shows the workers that everything was read; a missing one would not.
      const leave = commands.multi().xtrim(key, "MAXLEN", 0).expire(key, leavingSeconds).exec();
      await leave.catch(() => undefined);
      // While it waits to reconnect, ioredis never rejects commands that wait for the connection.
      const endsByItself = reader.status !== "reconnecting";
      reader.disconnect();
      if (endsByItself) await loop;
    },
  };
}

export type ReplyReader = ReturnType<typeof createReplyReader>;
