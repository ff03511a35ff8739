import { setImmediate as endOfTurn } from "node:timers/promises";
import { retry } from "#platform/concurrency/retry";
import { type RedisClient, reconnectTogether } from "#platform/redis";
import type { Uses } from "#platform/uses";
import { cancelledKey, channelOf, isUnanswered, type Notice, type Pace, paces } from "./frames.ts";

const backoff = { firstMs: 100, maxMs: 100 };
/** The notice or pace that each channel carries. */
const noticeOf: ReadonlyMap<string, Notice | Pace> = new Map([
  ...Object.entries(channelOf).map(([notice, channel]) => [channel, notice as Notice] as const),
  ...paces.map((pace) => [pace, pace] as const),
]);

/** The worker's side of cancellation: which running calls were cancelled or paused, or lost their callers. */
export function createCancellations(deps: Uses<"clock" | "log"> & { subscriber: RedisClient; commands: RedisClient }) {
  const { subscriber, commands, clock, log } = deps;
  const watched = new Map<string, (notice: Notice | Pace) => void>();
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

  /** Reads a notice from before the call began. Calls that begin in one turn of the event loop share the read. */
  async function notice(requestId: string): Promise<Notice | undefined> {
    asked.push(requestId);
    answers ??= ask();
    return (await answers).get(requestId);
  }

  /** Subscribes first, because notices published earlier are found by their key. */
  async function subscribe(): Promise<void> {
    await subscriber.subscribe(...noticeOf.keys());
    await Promise.all(
      [...watched.keys()].map(async (requestId) => {
        const missed = await notice(requestId);
        if (missed) watched.get(requestId)?.(missed);
      }),
    );
  }

  return {
    async start(): Promise<void> {
      subscriber.on("message", (channel: string, requestId: string) => {
        const notice = noticeOf.get(channel);
        if (notice) watched.get(requestId)?.(notice);
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
