import type { ServiceError } from "#errors";
import type { ObserveWrite } from "#platform/concurrency/group-commit";
import { retry } from "#platform/concurrency/retry";
import { rhythm } from "#platform/concurrency/rhythm";
import { randomBase62 } from "#platform/ids";
import { onReconnect } from "#platform/redis";
import type { Uses } from "#platform/uses";
import { deliveredSince } from "./delivered.ts";
import { createFrameBatches, type Failure, type Outbox } from "./frame-batches.ts";
import {
  type Frame,
  isUnanswered,
  limitUnits,
  type Outcome,
  pauseMs,
  replyKey,
  silenceMs,
  silentMs,
  splitText,
  toField,
} from "./frames.ts";

/** A call with more text that Redis has not confirmed waits before it writes more. */
const maxUnsentUnits = 4 * limitUnits;
/** After an outage of Redis, an instance has this long to recreate its reply key before it counts as dead. */
const settlingMs = 10_000;
const retryDelayMs = 100;
/** Less than the second after which it is checked again. */
const freshMs = 900;
/** If Redis takes longer to respond, it was stalled, and instances could not renew their streams. */
const stalledMs = 1_000;

/** The reply key is missing, but Redis has only recently recovered. */
class KeyMissing extends Error {}

export function createReplies(
  deps: Uses<"redis" | "clock"> & {
    /** After this time without a renewal, an API instance counts as dead. */
    apiTimeoutMs: number;
    observe?: ObserveWrite;
  },
) {
  const { redis, apiTimeoutMs, clock } = deps;
  let reconnectedAt = Number.NEGATIVE_INFINITY;
  onReconnect(redis, () => {
    reconnectedAt = clock.now();
  });
  const isSettled = () => clock.now() - reconnectedAt > settlingMs;
  /** The time at which each API instance was last seen. */
  const seenAt = new Map<string, number>();

  const retrying = {
    clock,
    backoff: { firstMs: retryDelayMs, maxMs: retryDelayMs },
    retryIf: (error: unknown) => error instanceof KeyMissing || isUnanswered(redis, error),
  };

  /**
   * Returns false if the instance is dead. If the response to the first write was lost, the entry may be in the stream
   * twice; the reader recognizes duplicate frames by their numbers.
   */
  function add(replyTo: string, fields: readonly string[]): Promise<boolean> {
    return retry(retrying, async () => {
      const id = await redis.call("XADD", replyKey(replyTo), "NOMKSTREAM", "*", ...fields);
      if (id === null && !isSettled()) throw new KeyMissing();
      return id !== null;
    });
  }

  const send = createFrameBatches(add, deps.observe);

  /**
   * Returns true if the API instance has renewed its reply stream within `withinMs`, as of the last second. After an
   * outage this is unknown, and the answer is true.
   */
  async function hasRenewed(replyTo: string, withinMs: number): Promise<boolean> {
    const askedAt = clock.now();
    if (askedAt - (seenAt.get(replyTo) ?? Number.NEGATIVE_INFINITY) < freshMs) return true;
    const remainingMs = await retry(retrying, () => redis.pttl(replyKey(replyTo)));
    if (clock.now() - askedAt > stalledMs) reconnectedAt = clock.now();
    const silentForMs = silenceMs(remainingMs);
    if (silentForMs < silentMs) seenAt.set(replyTo, askedAt);
    else seenAt.delete(replyTo);
    return silentForMs < withinMs || !isSettled();
  }

  return {
    /** Returns false if the instance has been silent for so long that no more calls are run for it. */
    instanceResponds: (replyTo: string) => hasRenewed(replyTo, silentMs),
    /** Returns false if the instance has been silent for so long that it counts as dead. */
    instanceLives: (replyTo: string) => hasRenewed(replyTo, apiTimeoutMs),
    /** The calls that an instance has delivered since it wrote this note. */
    deliveredSince: (note: string) => deliveredSince(redis, note),

    /** Reports the end of a call from a delivery that did not run it, in an unnumbered frame. */
    async late(replyTo: string, requestId: string, error: ServiceError, outcome?: Outcome): Promise<boolean> {
      const data = JSON.stringify(error.fields());
      return add(replyTo, toField({ requestId, seq: -1, kind: "error", data, ...(outcome && { outcome }) }));
    },

    /**
     * The worker's end of one call's reply. Rejects when Redis refuses a frame; later frames are not written. `onGone`
     * is called once when the waiting instance is found to be dead, which is also reported by resolving to false.
     */
    open(replyTo: string, requestId: string, onGone: () => void) {
      const attempt = randomBase62(8);
      let seq = 0;
      let unsentText = "";
      let unsentMark = 0;
      let sentMark = 0;
      let deliveredMark = 0;
      let firstWriteAt: number | undefined;
      let headersToSend: Readonly<Record<string, string>> | undefined;
      let failure: Failure | undefined;
      /** Frames that Redis has not confirmed yet, and the waiter for their confirmation. */
      let pending = 0;
      let pendingUnits = 0;
      let stopPause: (() => void) | undefined;
      let drained: PromiseWithResolvers<void> | undefined;

      function settle(frames: number, units: number): void {
        pending = frames;
        pendingUnits = units;
        if (frames > 0) return;
        drained?.resolve();
        drained = undefined;
      }

      const outbox: Outbox = {
        unsent: [],
        isPaused: () => stopPause !== undefined,
        written({ field: [, text], mark }) {
          deliveredMark = mark;
          settle(pending - 1, pendingUnits - text.length);
        },
        failed(reason) {
          if (failure) return;
          failure = reason;
          settle(0, 0);
          if (reason === "gone") onGone();
        },
      };

      function sendFrame(kind: Frame["kind"], data: string, mark: number, given?: Outcome): void {
        if (failure) return;
        const outcome = seq === 0 && headersToSend ? { ...given, headers: headersToSend } : given;
        const frame = { requestId, seq: seq++, kind, data, attempt, ...(outcome && { outcome }) };
        outbox.unsent.push({ field: toField(frame), mark });
        pending++;
        pendingUnits += data.length;
        send(replyTo, outbox);
      }

      /** All parts except the last are chunks with the previous mark, because only the last one completes the text. */
      function sendParts(kind: Frame["kind"], texts: readonly string[], outcome?: Outcome): void {
        const parts = texts.flatMap(splitText);
        const last = parts.pop() ?? "";
        for (const part of parts) sendFrame("chunk", part, sentMark);
        sentMark = unsentMark;
        sendFrame(kind, last, sentMark, outcome);
      }

      function sendText(): void {
        rhythm.cancel(sendText);
        if (!unsentText) return;
        const text = unsentText;
        unsentText = "";
        sendParts("chunk", [text]);
      }

      function resume(): void {
        if (!stopPause) return;
        stopPause();
        stopPause = undefined;
        if (!failure && outbox.unsent.length > 0) send(replyTo, outbox);
      }

      async function allSent(): Promise<boolean> {
        if (pending > 0) await (drained ??= Promise.withResolvers()).promise;
        if (typeof failure === "object") throw failure.error;
        return failure === undefined;
      }

      return {
        /**
         * Writes complete events of a stream. The first is sent immediately, later ones with those of others at the beat.
         * `mark` is the amount written so far in a unit of the caller's choice. Resolves when more may be written.
         */
        async write(text: string, mark: number): Promise<void> {
          firstWriteAt ??= clock.now();
          unsentText += text;
          unsentMark = mark;
          if (seq === 0 || unsentText.length > limitUnits || rhythm.isOnBeat()) sendText();
          else rhythm.soon(sendText);
          if (failure || pendingUnits > maxUnsentUnits) await allSent();
        },
        /** Writes no frames until `resume`, or for `pauseMs`. */
        pause(): void {
          stopPause?.();
          stopPause = clock.after(pauseMs, resume);
        },
        resume,
        /** The mark of the last text that Redis has completely. */
        delivered: () => deliveredMark,
        /** Unix milliseconds of the first call of `write`. */
        firstWriteAt: () => firstWriteAt,
        /** Sets headers for the caller, to be sent with the first frame. The latest call before that counts. */
        announce(headers: Readonly<Record<string, string>>): void {
          headersToSend = headers;
        },
        /** Sends pending text, and resolves when Redis has everything that was written. */
        flush(): Promise<boolean> {
          sendText();
          return allSent();
        },
        /** `text` may come in parts, which are sent as they are if they fit frames. */
        final(text: string | readonly string[], outcome: Outcome): Promise<boolean> {
          rhythm.cancel(sendText);
          const [first = "", ...others] = typeof text === "string" ? [text] : text;
          // Pending text is sent with the final frame, which saves a frame.
          sendParts("final", [unsentText + first, ...others], outcome);
          unsentText = "";
          return allSent();
        },
        error(error: ServiceError, outcome?: Outcome): Promise<boolean> {
          sendText();
          // An error is never split, because the reader could not distinguish the first parts from the response.
          sendFrame("error", JSON.stringify(error.fields()), unsentMark, outcome);
          return allSent();
        },
      };
    },
  };
}

export type Replies = ReturnType<typeof createReplies>;
export type Reply = ReturnType<Replies["open"]>;
