import type { Redis } from "ioredis";
import type { Logger } from "#platform/logger";
import { follow } from "#platform/redis";
import { cancelChannel, cancelledKey } from "./frames.ts";
import { untilAnswered } from "./until-answered.ts";

/** The worker's end of cancelling: which of the calls that run here nobody waits for any more. */
export interface Cancellations {
  start(): Promise<void>;
  /** Calls `onCancel` when the request is cancelled while it runs here. Returns how to stop listening. */
  watch(requestId: string, onCancel: () => void): () => void;
  /** Whether it was cancelled before it began. */
  isCancelled(requestId: string): Promise<boolean>;
  stop(): void;
}

export function createCancellations(deps: { subscriber: Redis; commands: Redis; log: Logger }): Cancellations {
  const { subscriber, commands, log } = deps;
  const watched = new Map<string, () => void>();
  let unfollow = () => {};
  const isCancelled = async (requestId: string) =>
    (await untilAnswered(() => commands.exists(cancelledKey(requestId)))) === 1;

  /** What was published while the subscriber was away is found by its key. */
  async function catchUp(): Promise<void> {
    const ids = [...watched.keys()];
    const found = await Promise.all(ids.map(isCancelled));
    ids.forEach((id, i) => {
      if (found[i]) watched.get(id)?.();
    });
  }

  return {
    async start() {
      subscriber.on("message", (_channel: string, requestId: string) => watched.get(requestId)?.());
      await subscriber.subscribe(cancelChannel);
      unfollow = follow(commands, subscriber);
      subscriber.on("ready", () => {
        // Only when it listens again: what is published before that is found by its key.
        subscriber
          .subscribe(cancelChannel)
          .then(catchUp)
          .catch((error: Error) => log.warn({ err: error.message }, "catching up with cancellations"));
      });
    },
    watch(requestId, onCancel) {
      watched.set(requestId, onCancel);
      return () => void watched.delete(requestId);
    },
    isCancelled,
    stop() {
      unfollow();
      subscriber.disconnect();
    },
  };
}
