import type { Redis } from "ioredis";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { reconnectTogether } from "#platform/redis";
import { cancelledKey, channelOf, type Frame, fromFields, type Notice, replyKey } from "./frames.ts";

export interface ReplyReader {
  /** This API instance's name, random at each start. */
  readonly instance: string;
  /** Makes the reply stream and begins to read it. */
  start(): Promise<void>;
  /** Registers who waits for a request's frames; call it before the job is enqueued. Returns how to stop waiting. */
  expect(requestId: string, onFrame: (frame: Frame) => void): () => void;
  /** Tells the workers that the call is over here, or that its caller is gone; holds so long for a job that has not begun. */
  notify(notice: Notice, requestId: string, ttlMs: number): Promise<void>;
  /** Resolves when all that was written before this call has been handed over. Rejects while Redis cannot be written. */
  caughtUp(): Promise<void>;
  /** Whether an instance, this one or another, holds its lease. */
  instanceLives(instance: string): Promise<boolean>;
  stop(): Promise<void>;
}

const leaseSeconds = 30;
/** Long enough for every worker to look, once a second. */
const leavingSeconds = 3;
const renewMs = 5_000;
const readCount = 64;
const blockMs = 5_000;
const trimMs = 250;

/**
 * Renews the lease, or makes the stream again when it is missing. Its ids go on after the last one read, whatever the
 * clock of a server that took over says. A server that took over with an older stream may have given out ids that are
 * not after that one: their entries would never be read, so they are the answer.
 */
const renewScript = `
local key, seconds, last, following = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local missed = {}
if redis.call("EXPIRE", key, seconds) == 0 then
  redis.call("XADD", key, "MAXLEN", "0", following, "lease", "1")
  redis.call("EXPIRE", key, seconds)
elseif last ~= "0-0" and type(redis.pcall("XADD", key, last, "lease", "1")) == "string" then
  missed = redis.call("XRANGE", key, "-", "(" .. last)
  redis.call("XTRIM", key, "MAXLEN", "0")
end
return missed`;

/** The id that follows at once. */
function after(id: string): string {
  const [ms, count] = id.split("-");
  return `${ms}-${Number(count) + 1}`;
}

export function createReplyReader(deps: {
  instance: string;
  /** Reads, and may block. */
  reader: Redis;
  commands: Redis;
  clock: Clock;
  log: Logger;
}): ReplyReader {
  const { instance, reader, commands, clock, log } = deps;
  const key = replyKey(instance);
  const waiting = new Map<string, (frame: Frame) => void>();
  const strays = new Map<string, number>();
  const markers = new Map<string, () => void>();
  let markersWritten = 0;
  let stopped = false;
  let lastId = "0-0";
  let trimmedTo = lastId;
  let trimmedAt = 0;
  let loop: Promise<void> = Promise.resolve();
  let renewing: Promise<boolean> | undefined;
  /** Since the reader last came to a server the stream has been renewed there. */
  let settled = false;
  let stopRenewing = () => {};
  let unfollow = () => {};

  async function renew(): Promise<void> {
    const args = [leaseSeconds, lastId, after(lastId)];
    const missed = (await commands.eval(renewScript, 1, key, ...args)) as [id: string, fields: string[]][];
    for (const [, fields] of missed) handOverSafely(fields);
  }

  function renewSoon(): Promise<boolean> {
    renewing = renew().then(
      () => true,
      (error: Error) => {
        log.warn({ err: error.message }, "reply lease");
        return false;
      },
    );
    return renewing;
  }

  /** After an outage the lease may be gone already: not a second is lost until the next renewal. */
  const onCommandsReady = () => {
    settled = false;
    void renewSoon();
  };
  const onReaderReady = () => {
    settled = false;
    void renewSoon().then((renewed) => {
      settled = renewed;
    });
  };

  // The key first: a worker that subscribes between the two finds it. No pipeline: that resolves whatever became of it.
  const notify = async (notice: Notice, requestId: string, ttlMs: number) => {
    await Promise.all([
      commands.set(cancelledKey(requestId), notice, "PX", Math.max(1_000, Math.ceil(ttlMs))),
      commands.publish(channelOf[notice], requestId),
    ]);
  };

  /** Somebody works for nobody: say so once a second. */
  function stray(requestId: string): void {
    const now = clock.now();
    if (now - (strays.get(requestId) ?? 0) < 1_000) return;
    if (strays.size > 10_000) strays.clear();
    strays.set(requestId, now);
    notify("cancelled", requestId, 60_000).catch((error: Error) =>
      log.warn({ err: error.message, requestId }, "cancel"),
    );
  }

  function handOver(fields: string[]): void {
    if (fields[0] === "marker") return markers.get(fields[1] ?? "")?.();
    const frame = fromFields(fields);
    if (!frame) return;
    const onFrame = waiting.get(frame.requestId);
    if (onFrame) onFrame(frame);
    else if (frame.kind === "chunk") stray(frame.requestId);
  }

  function handOverSafely(fields: string[]): void {
    try {
      handOver(fields);
    } catch (error) {
      log.error({ err: error }, "a frame could not be handed over");
    }
  }

  /**
   * Only what was handed over is trimmed; a trim that fails is made good by the next. A server that took over may have
   * older ids that are unread.
   */
  function trim(): void {
    const now = clock.now();
    if (!settled || lastId === trimmedTo || now - trimmedAt < trimMs) return;
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
        // What a renewal finds was written before this.
        await renewing;
        for (const [, entries] of answer ?? [])
          for (const [id, fields] of entries) {
            lastId = id;
            handOverSafely(fields);
          }
        trim();
      } catch (error) {
        if (stopped) return;
        log.warn({ err: (error as Error).message }, "reading replies");
        await new Promise((resolve) => clock.after(100, () => resolve(undefined)));
      }
    }
  }

  return {
    instance,
    async start() {
      await renew();
      settled = true;
      stopRenewing = clock.every(renewMs, () => void renewSoon());
      unfollow = reconnectTogether(commands, reader);
      commands.on("ready", onCommandsReady);
      reader.on("ready", onReaderReady);
      loop = read();
    },
    expect(requestId, onFrame) {
      waiting.set(requestId, onFrame);
      return () => {
        if (waiting.get(requestId) === onFrame) waiting.delete(requestId);
      };
    },
    notify,
    async caughtUp() {
      const marker = String(markersWritten++);
      const { promise, resolve } = Promise.withResolvers<void>();
      markers.set(marker, resolve);
      try {
        await commands.xadd(key, "*", "marker", marker);
        await promise;
      } finally {
        markers.delete(marker);
      }
    },
    instanceLives: async (other) => (await commands.exists(replyKey(other))) === 1,
    async stop() {
      stopped = true;
      stopRenewing();
      unfollow();
      commands.off("ready", onCommandsReady);
      reader.off("ready", onReaderReady);
      // Everything is handed over: an empty stream says so to the workers, a missing one would not.
      const leave = commands.multi().xtrim(key, "MAXLEN", 0).expire(key, leavingSeconds).exec();
      await leave.catch(() => undefined);
      reader.disconnect();
      await loop;
    },
  };
}
