import type { Redis } from "ioredis";
import { z } from "zod";
import type { Logger } from "#platform/logger";
import type { Recalls } from "./leases.ts";

const channel = "leases:recall";
const message = z.object({ from: z.string(), account: z.string().optional() });

/**
 * API instances ask each other to return what their leases do not use. Nobody waits for an answer: what comes back is in
 * MongoDB. `subscriber`: a connection of its own.
 */
export async function createRecalls(deps: {
  readonly instance: string;
  readonly subscriber: Redis;
  readonly commands: Redis;
  readonly log: Logger;
}): Promise<Recalls> {
  const { instance, subscriber, commands, log } = deps;
  await subscriber.subscribe(channel);
  return {
    ask(account) {
      commands
        .publish(channel, JSON.stringify({ from: instance, account }))
        .catch((error: Error) => log.warn({ err: error.message }, "asking for unused leases"));
    },
    onAsked(giveBack) {
      subscriber.on("message", (_channel, text) => {
        const request = message.parse(JSON.parse(text));
        if (request.from !== instance) giveBack(request);
      });
    },
  };
}
