import type { Redis } from "ioredis";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { reconnectTogether } from "#platform/redis";
import { retry } from "#platform/retry";
import { cancelChannel, cancelledKey, disconnectChannel, isUnanswered, type Notice } from "./frames.ts";

/** The worker's end of cancellation: which of its running calls were cancelled, and whose callers disconnected. */
export interface Cancellations {
  start(): Promise<void>;
  /** Calls `onNotice` for a request that runs here. Returns how to stop listening. */
  watch(requestId: string, onNotice: (notice: Notice) => void): () => void;
  /** A notice from before the call began. */
  notice(requestId: string): Promise<Notice | undefined>;
  stop(): void;
}

const backoff = { firstMs: 100, maxMs: 100 };

export function createCancellations(deps: {
  subscriber: Redis;
  commands: Redis;
  clock: Clock;
  log: Logger;
}): Cancellations {
  const { subscriber, commands, clock, log } = deps;
  const watched = new Map<string, (notice: Notice) => void>();
  let unfollow = () => {};

  async function notice(requestId: string): Promise<Notice | undefined> {
    const stored = await retry({ clock, backoff, retryIf: isUnanswered }, () => commands.get(cancelledKey(requestId)));
    if (stored === null) return undefined;
    return stored === "disconnected" ? stored : "cancelled";
  }

  /** Subscribes first: what was published before that is found by its key. */
  async function resubscribe(): Promise<void> {
    await subscriber.subscribe(cancelChannel, disconnectChannel);
    await Promise.all(
      [...watched.keys()].map(async (requestId) => {
        const missed = await notice(requestId);
        if (missed) watched.get(requestId)?.(missed);
      }),
    );
  }

  return {
    async start() {
      subscriber.on("message", (channel: string, requestId: string) =>
        watched.get(requestId)?.(channel === disconnectChannel ? "disconnected" : "cancelled"),
      );
      await subscriber.subscribe(cancelChannel, disconnectChannel);
      unfollow = reconnectTogether(commands, subscriber);
      subscriber.on("ready", () => {
        resubscribe().catch((error: Error) => log.warn({ err: error.message }, "catching up with cancellations"));
      });
    },
    watch(requestId, onNotice) {
      watched.set(requestId, onNotice);
      return () => void watched.delete(requestId);
    },
    notice,
    stop() {
      unfollow();
      subscriber.disconnect();
    },
  };
}
