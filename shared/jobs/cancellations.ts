import { setImmediate as endOfTurn } from "node:timers/promises";
import { Redis } from "ioredis";
import { retry } from "#platform/concurrency/retry";
import { type RedisClient, reconnectTogether } from "#platform/redis";
import type { Uses } from "#platform/uses";
import { cancelledKey, channelOf, isUnanswered, type Notice, type Pace, paces } from "./frames.ts";

const backoff = { firstMs: 100, maxMs: 100 };
/** Notices are remembered for at least this long, and for twice as long at most. */
const rememberMs = 60_000;
const maxRemembered = 50_000;
/** The clocks of two machines may differ by this much. */
const skewMs = 10_000;
/** The notice or pace that each channel carries. */
const noticeOf: ReadonlyMap<string, Notice | Pace> = new Map([
  ...Object.entries(channelOf).map(([notice, channel]) => [channel, notice as Notice] as const),
  ...paces.map((pace) => [pace, pace] as const),
]);

/** The worker's side of cancellation: which running calls were cancelled or paused, or lost their callers. */
export function createCancellations(deps: Uses<"clock" | "log"> & { subscriber: RedisClient; commands: RedisClient }) {
  const { subscriber, commands, clock, log } = deps;
  const watched = new Map<string, (notice: Notice | Pace) => void>();
  /** Notices of calls that do not run here, or not yet: first those of this period, then those of the last one. */
  let remembered: readonly [Map<string, Notice>, ReadonlyMap<string, Notice>] = [new Map(), new Map()];
  let periodSince = clock.now();
  /** Unix milliseconds since which no message was missed. */
  let listeningSince = Number.POSITIVE_INFINITY;
  let asked: string[] = [];
  let answers: Promise<ReadonlyMap<string, Notice>> | undefined;
  let unfollow = () => {};

  async function ask(): Promise<ReadonlyMap<string, Notice>> {
    await endOfTurn();
    const ids = asked;
    asked = [];
    answers = undefined;
    const retrying = { clock, backoff, retryIf: (error: unknown) => isUnanswered(commands, error) };
    // The channels have several hash slots. The connection sends the commands together.
    const stored = await retry(retrying, () => Promise.all(ids.map((id) => commands.get(cancelledKey(id)))));
    return new Map(ids.flatMap((id, at) => (stored[at] ? [[id, stored[at] as Notice]] : [])));
  }

  /** Reads a stored notice. Calls that begin in one turn of the event loop share the read. */
  async function readNotice(requestId: string): Promise<Notice | undefined> {
    asked.push(requestId);
    answers ??= ask();
    return (await answers).get(requestId);
  }

  function remember(requestId: string, notice: Notice): void {
    const now = clock.now();
    const isFull = remembered[0].size >= maxRemembered;
    if (now - periodSince >= rememberMs || isFull) {
      remembered = [new Map(), remembered[0]];
      if (isFull) listeningSince = Math.max(listeningSince, periodSince);
      periodSince = now;
    }
    remembered[0].set(requestId, notice);
  }

  /** A cluster's subscriber changes nodes without a word. */
  const missesNothing = subscriber instanceof Redis;

  /**
   * Returns the notice of a call that was accepted at this time (unix milliseconds) and begins now. Redis is asked only about
   * calls from before the messages that are remembered.
   */
  async function notice(requestId: string, acceptedAt: number): Promise<Notice | undefined> {
    const knownSince = Math.max(listeningSince, clock.now() - rememberMs);
    if (!missesNothing || acceptedAt - skewMs < knownSince) return readNotice(requestId);
    return remembered[0].get(requestId) ?? remembered[1].get(requestId);
  }

  /** Subscribes first, because notices published earlier are found by their key. */
  async function subscribe(): Promise<void> {
    await subscriber.subscribe(...noticeOf.keys());
    listeningSince = clock.now();
    await Promise.all(
      [...watched.keys()].map(async (requestId) => {
        const missed = await readNotice(requestId);
        if (missed) watched.get(requestId)?.(missed);
      }),
    );
  }

  return {
    async start(): Promise<void> {
      subscriber.on("message", (channel: string, requestId: string) => {
        const notice = noticeOf.get(channel);
        if (!notice) return;
        const onNotice = watched.get(requestId);
        if (onNotice) onNotice(notice);
        else if (notice === "cancelled" || notice === "disconnected") remember(requestId, notice);
      });
      subscriber.on("close", () => {
        listeningSince = Number.POSITIVE_INFINITY;
      });
      await subscribe();
      unfollow = reconnectTogether(commands, subscriber);
      subscriber.on("ready", () => {
        subscribe().catch((error: Error) =>
          log.warn({ err: error.message }, "could not subscribe to cancellations again"),
        );
      });
    },
    /** Calls `onNotice` for a request that runs here. Returns a function that stops listening. */
    watch(requestId: string, onNotice: (notice: Notice | Pace) => void): () => void {
      watched.set(requestId, onNotice);
      return () => void watched.delete(requestId);
    },
    notice,
    stop(): void {
      unfollow();
      subscriber.disconnect();
    },
  };
}

export type Cancellations = ReturnType<typeof createCancellations>;
