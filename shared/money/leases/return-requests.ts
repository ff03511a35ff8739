import type { Logger } from "#platform/logger";
import type { RedisClient } from "#platform/redis";
import type { Recalls } from "./lease.ts";

const channel = "leases:recall";

/**
 * API instances ask each other to return what their leases do not use. Nobody waits for an answer: what comes back is in
 * MongoDB. A message is the instance that asks and, unless it asks for all of them, the account. `subscriber`: a connection of
 * its own.
 */
export async function createRecalls(deps: {
  readonly instance: string;
  readonly subscriber: RedisClient;
  readonly commands: RedisClient;
  readonly log: Logger;
}): Promise<Recalls> {
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
