import type { RedisClient } from "#platform/redis";
import type { Uses } from "#platform/uses";

const channel = "leases:recall";

/** Requests between instances to return what their leases do not use. */
export interface ReturnRequests {
  /** Asks for the leases of one account, or of all accounts. */
  ask(account?: string): void;
  /** `from` is the instance that asks. */
  onAsked(giveBack: (request: { readonly account?: string | undefined; readonly from: string }) => void): void;
}

/**
 * No response is awaited, because returned amounts appear in MongoDB. A message contains the instance that asks and,
 * unless it asks for all accounts, the account. `subscriber` is a connection used only for this.
 */
export async function createReturnRequests(
  deps: Uses<"log"> & { readonly instance: string; readonly subscriber: RedisClient; readonly commands: RedisClient },
): Promise<ReturnRequests> {
  const { instance, subscriber, commands, log } = deps;
  await subscriber.subscribe(channel);
  subscriber.on("ready", () => {
    subscriber
      .subscribe(channel)
      .catch((error: Error) => log.warn({ err: error.message }, "could not subscribe to return requests again"));
  });
  return {
    ask(account) {
      commands
        .publish(channel, account === undefined ? instance : `${instance} ${account}`)
        .catch((error: Error) =>
          log.warn({ err: error.message }, "could not request unused leases from other instances"),
        );
    },
    onAsked(giveBack) {
      subscriber.on("message", (_channel, text) => {
        const [from = "", account] = text.split(" ");
        if (from !== instance) giveBack({ from, account });
      });
    },
  };
}
