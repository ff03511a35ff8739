import type { Redis } from "ioredis";
import type { ServiceError } from "#errors";
import type { Clock } from "#platform/clock";
import { randomBase62 } from "#platform/ids";
import { retry } from "#platform/retry";
import { type Frame, isUnanswered, type Outcome, replyKey, splitText, toFields } from "./frames.ts";

const gatherMs = 15;
const maxUnsentFrames = 32;
/** After an outage of Redis, an instance gets this long to make its reply key again before it counts as gone. */
const settlingMs = 10_000;
const retryDelayMs = 100;
/** Less than the second after which it is checked again. */
const freshMs = 900;

/** The reply key is missing, but Redis has not been back for long. */
class KeyMissing extends Error {}

export function createReplies(deps: { redis: Redis; clock: Clock }) {
  const { redis, clock } = deps;
  let reconnectedAt = Number.NEGATIVE_INFINITY;
  redis.on("ready", () => {
    reconnectedAt = clock.now();
  });
  const isSettled = () => clock.now() - reconnectedAt > settlingMs;
  /** When each API instance was last seen. */
  const seenAt = new Map<string, number>();

  const retrying = {
    clock,
    backoff: { firstMs: retryDelayMs, maxMs: retryDelayMs },
    retryIf: (error: unknown) => error instanceof KeyMissing || isUnanswered(error),
  };

  /**
   * False: the instance is gone. If the answer to the first write was lost the frame may be in the stream twice: the
   * reader recognizes that by its number.
   */
  function add(replyTo: string, frame: Frame): Promise<boolean> {
    const fields = toFields(frame);
    return retry(retrying, async () => {
      const id = await redis.call("XADD", replyKey(replyTo), "NOMKSTREAM", "*", ...fields);
      if (id === null && !isSettled()) throw new KeyMissing();
      return id !== null;
    });
  }

  return {
    /** Whether the API instance held its reply key in the last second. After an outage that is unknown, and it counts as alive. */
    async instanceLives(replyTo: string): Promise<boolean> {
      const askedAt = clock.now();
      if (askedAt - (seenAt.get(replyTo) ?? Number.NEGATIVE_INFINITY) < freshMs) return true;
      if ((await retry(retrying, () => redis.exists(replyKey(replyTo)))) === 1) {
        seenAt.set(replyTo, askedAt);
        return true;
      }
      seenAt.delete(replyTo);
      return !isSettled();
    },

    /** How a call ended, from a delivery that did not run it: an unnumbered frame. */
    async late(replyTo: string, requestId: string, error: ServiceError, outcome?: Outcome): Promise<boolean> {
      const data = JSON.stringify(error.fields());
      return add(replyTo, { requestId, seq: -1, kind: "error", data, ...(outcome && { outcome }) });
    },

    /**
     * The worker's end of one call's reply. Rejects when Redis refuses a frame: what comes after it is not written. `onGone`
     * is called once when the instance that waits is found to be gone; resolving with false says so too.
     */
    open(replyTo: string, requestId: string, onGone: () => void) {
      const attempt = randomBase62(8);
      const unsent: { readonly frame: Frame; readonly mark: number }[] = [];
      let sending: Promise<void> | undefined;
      let seq = 0;
      let gathered = "";
      let gatheredMark = 0;
      let deliveredMark = 0;
      let firstWriteAt: number | undefined;
      let stopTimer: (() => void) | undefined;
      let announced: Readonly<Record<string, string>> | undefined;
      let gone = false;
      let failure: { readonly error: unknown } | undefined;

      /** One frame after the other, so that their order holds with repeated writes and it is known what Redis has. */
      async function sendAll(): Promise<void> {
        try {
          for (let next = unsent[0]; next; next = unsent[0]) {
            if (!(await add(replyTo, next.frame))) {
              gone = true;
              onGone();
              break;
            }
            deliveredMark = next.mark;
            unsent.shift();
          }
        } catch (error) {
          failure = { error };
        }
        if (gone || failure) unsent.length = 0;
        sending = undefined;
      }

      function send(kind: Frame["kind"], data: string, mark: number, given?: Outcome): void {
        if (gone || failure) return;
        const outcome = seq === 0 && announced ? { ...given, headers: announced } : given;
        unsent.push({ frame: { requestId, seq: seq++, kind, data, attempt, ...(outcome && { outcome }) }, mark });
        sending ??= sendAll();
      }

      /** All parts but the last are chunks, and their mark is the one before: only with the last part the text is whole. */
      function sendParts(kind: Frame["kind"], text: string, outcome?: Outcome): void {
        const parts = splitText(text);
        const last = parts.pop() ?? "";
        const before = unsent.at(-1)?.mark ?? deliveredMark;
        for (const part of parts) send("chunk", part, before);
        send(kind, last, gatheredMark, outcome);
      }

      function sendGathered(): void {
        stopTimer?.();
        stopTimer = undefined;
        if (!gathered) return;
        const text = gathered;
        gathered = "";
        sendParts("chunk", text);
      }

      async function allSent(): Promise<boolean> {
        await sending;
        if (failure) throw failure.error;
        return !gone;
      }

      return {
        /**
         * Whole events of a stream. The first is sent at once, later ones are gathered. `mark` is what has been written so far
         * in a unit of the caller's choice. Resolves when more may be written.
         */
        async write(text: string, mark: number): Promise<void> {
          firstWriteAt ??= clock.now();
          gathered += text;
          gatheredMark = mark;
          if (seq === 0) sendGathered();
          else stopTimer ??= clock.after(gatherMs, sendGathered);
          if (failure || unsent.length > maxUnsentFrames) await allSent();
        },
        /** The mark of the last text that Redis has whole. */
        delivered: () => deliveredMark,
        /** When `write` was first called. Unix milliseconds. */
        firstWriteAt: () => firstWriteAt,
        /** Headers for the caller: sent with the first frame, ignored after it. The latest call counts. */
        announce(headers: Readonly<Record<string, string>>): void {
          announced = headers;
        },
        /** Sends what is gathered, and resolves when Redis has all that was written. */
        flush(): Promise<boolean> {
          sendGathered();
          return allSent();
        },
        final(text: string, outcome: Outcome): Promise<boolean> {
          stopTimer?.();
          // What is still gathered is sent with the end, which saves a frame.
          sendParts("final", gathered + text, outcome);
          gathered = "";
          return allSent();
        },
        error(error: ServiceError, outcome?: Outcome): Promise<boolean> {
          sendGathered();
          // Never in parts: the reader could not tell the first of them from the answer.
          send("error", JSON.stringify(error.fields()), gatheredMark, outcome);
          return allSent();
        },
      };
    },
  };
}

export type Replies = ReturnType<typeof createReplies>;
export type Reply = ReturnType<Replies["open"]>;
