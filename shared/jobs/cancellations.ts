import type { Redis } from "ioredis";
import type { Logger } from "#platform/logger";
import { reconnectTogether } from "#platform/redis";
import { cancelChannel, cancelledKey, disconnectChannel, type Notice } from "./frames.ts";
import { untilAnswered } from "./until-answered.ts";

/** The worker's end of cancelling: which of the calls that run here nobody waits for any more. */
export interface Cancellations {
  start(): Promise<void>;
  /** Calls `onNotice` when the request is cancelled, or its caller disconnects, while it runs here. Returns how to stop listening. */
  watch(requestId: string, onNotice: (notice: Notice) => void): () => void;
  /** What was said of it before it began. */
  notice(requestId: string): Promise<Notice | undefined>;
  stop(): void;
}

export function createCancellations(deps: { subscriber: Redis; commands: Redis; log: Logger }): Cancellations {
  const { subscriber, commands, log } = deps;
  let unfollow = () => {};
  const watched = new Map<string, (notice: Notice) => void>();
  async function notice(requestId: string): Promise<Notice | undefined> {
    const stored = await untilAnswered(() => commands.get(cancelledKey(requestId)));
    if (stored === null) return undefined;
    return stored === "disconnected" ? stored : "cancelled";
  }

  /** What was published while the subscriber was away is found by its key. */
  async function catchUp(): Promise<void> {
    const ids = [...watched.keys()];
    const found = await Promise.all(ids.map(notice));
    ids.forEach((id, i) => {
      const told = found[i];
      if (told) watched.get(id)?.(told);
    });
  }

  return {
    async start() {
      subscriber.on("message", (channel: string, requestId: string) =>
        watched.get(requestId)?.(channel === disconnectChannel ? "disconnected" : "cancelled"),
      );
      await subscriber.subscribe(cancelChannel, disconnectChannel);
      unfollow = reconnectTogether(commands, subscriber);
      subscriber.on("ready", () => {
        // Only when it listens again: what is published before that is found by its key.
        subscriber
          .subscribe(cancelChannel, disconnectChannel)
          .then(catchUp)
          .catch((error: Error) => log.warn({ err: error.message }, "catching up with cancellations"));
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
