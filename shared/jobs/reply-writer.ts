import type { Redis } from "ioredis";
import type { ServiceError } from "#errors";
import { type Clock, sleep } from "#platform/clock";
import { randomBase62 } from "#platform/ids";
import { type Frame, type Outcome, replyKey, splitText, toFields } from "./frames.ts";
import { untilAnswered } from "./until-answered.ts";

/** The worker's end of one call's reply. Rejects when Redis refuses a frame: what comes after it is not written. */
export interface Reply {
  /**
   * Whole events of a stream. The first goes at once, later ones are gathered. `mark` is what has been said so far in
   * units of the caller's choice; `delivered()` is the mark of the last text that Redis has whole.
   * Resolves when more may be written.
   */
  write(text: string, mark: number): Promise<void>;
  delivered(): number;
  /** Headers for the caller: they go with the first frame, and do nothing after it. The last word counts. */
  announce(headers: Readonly<Record<string, string>>): void;
  /** Sends what is gathered, and resolves when Redis has all that was written. False: the instance is gone. */
  flush(): Promise<boolean>;
  final(text: string, outcome: Outcome): Promise<boolean>;
  error(error: ServiceError, outcome?: Outcome): Promise<boolean>;
}

const gatherMs = 15;
const mostUnsent = 32;
/** A missing reply key means that the instance is gone only when it has had time to make it again after an outage. */
const settlingMs = 10_000;
const tryAgainMs = 100;
/** Less than the second after which it is asked again. */
const freshMs = 900;

export function createReplies(deps: { redis: Redis; clock: Clock }) {
  const { redis, clock } = deps;
  let reconnectedAt = Number.NEGATIVE_INFINITY;
  redis.on("ready", () => {
    reconnectedAt = clock.now();
  });
  const settled = () => clock.now() - reconnectedAt > settlingMs;
  /** When each API instance was last seen. */
  const seenAt = new Map<string, number>();

  /**
   * False: the instance is gone. The frame may be in the stream twice when the answer to the first write was lost: the
   * reader recognizes it by its count.
   */
  async function add(replyTo: string, frame: Frame): Promise<boolean> {
    const fields = toFields(frame);
    const xadd = () => redis.call("XADD", replyKey(replyTo), "NOMKSTREAM", "*", ...fields);
    for (;;) {
      if ((await untilAnswered(xadd)) !== null) return true;
      if (settled()) return false;
      await sleep(clock, tryAgainMs);
    }
  }

  return {
    /**
     * Whether the API instance held its reply key in the last second. Unsure after an outage: then it counts as there.
     */
    async instanceLives(replyTo: string): Promise<boolean> {
      const askedAt = clock.now();
      if (askedAt - (seenAt.get(replyTo) ?? Number.NEGATIVE_INFINITY) < freshMs) return true;
      if ((await untilAnswered(() => redis.exists(replyKey(replyTo)))) === 1) {
        seenAt.set(replyTo, askedAt);
        return true;
      }
      seenAt.delete(replyTo);
      return !settled();
    },

    /** How a call ended, from a delivery that did not run it: outside the count of frames. */
    async late(replyTo: string, requestId: string, error: ServiceError, outcome?: Outcome): Promise<boolean> {
      const data = JSON.stringify(error.fields());
      const frame: Frame = { requestId, seq: -1, kind: "error", data, ...(outcome && { outcome }) };
      return add(replyTo, frame);
    },

    /** `onGone` is called once when the instance that waits is found to be gone. */
    open(replyTo: string, requestId: string, onGone: () => void): Reply {
      const attempt = randomBase62(8);
      const unsent: { readonly frame: Frame; readonly mark: number }[] = [];
      let sending: Promise<void> | undefined;
      let seq = 0;
      let gathered = "";
      let gatheredMark = 0;
      let deliveredMark = 0;
      let stopTimer: (() => void) | undefined;
      let announced: Readonly<Record<string, string>> | undefined;
      let gone = false;
      let failure: { readonly error: unknown } | undefined;

      /** One frame after the other: so their order stands whatever is sent again, and what Redis has is known. */
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

      function send(kind: Frame["kind"], data: string, mark: number, told?: Outcome): void {
        if (gone || failure) return;
        const outcome = seq === 0 && announced ? { ...told, headers: announced } : told;
        unsent.push({ frame: { requestId, seq: seq++, kind, data, attempt, ...(outcome && { outcome }) }, mark });
        sending ??= sendAll();
      }

      /** All parts but the last are chunks; only with the last one the whole is there. */
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
        async write(text, mark) {
          gathered += text;
          gatheredMark = mark;
          if (seq === 0) sendGathered();
          else stopTimer ??= clock.after(gatherMs, sendGathered);
          if (failure || unsent.length > mostUnsent) await allSent();
        },
        delivered: () => deliveredMark,
        announce(headers) {
          announced = headers;
        },
        flush() {
          sendGathered();
          return allSent();
        },
        final(text, outcome) {
          stopTimer?.();
          // What is still gathered goes out with the end: one frame less.
          sendParts("final", gathered + text, outcome);
          gathered = "";
          return allSent();
        },
        error(error, outcome) {
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
