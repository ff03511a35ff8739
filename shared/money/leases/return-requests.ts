import type { RedisClient } from "#platform/redis";
import type { Uses } from "#platform/uses";

const channel = "leases:recall";

/** How instances ask each other to return what their leases do not use. */
export interface ReturnRequests {
  /** Without an account: for all of them. */
  ask(account?: string): void;
  /** `from`: the instance that asks. */
  onAsked(giveBack: (request: { readonly account?: string | undefined; readonly from: string }) => void): void;
}

/**
 * Nobody waits for an answer: what comes back is in MongoDB. A message has the instance that asks and, unless it asks for all
 * of them, the account. `subscriber`: a connection for this alone.
 */
export async function createReturnRequests(
  deps: Uses<"log"> & { readonly instance: string; readonly subscriber: RedisClient; readonly commands: RedisClient },
): Promise<ReturnRequests> {
  const { instance, subscriber, commands, log } = deps;
  await subscriber.subscribe(channel);
  return {
    ask(account) {
      commands
        .publish(channel, account === undefined ? instance : `${instance} ${account}`)
        .catch((error: Error) => log.warn({ err: error.message }, "asking for unused leases"));
    },
    onAsked(giveBack) {
      subscriber.on("message", (_channel, text) => {
        const [from = "", account] = text.split(" ");
        if (from !== instance) giveBack({ from, account });
      });
    },
  };
}
