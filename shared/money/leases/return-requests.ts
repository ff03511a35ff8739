import { atMost } from "#platform/clock";
import type { RedisClient } from "#platform/redis";
import type { Uses } from "#platform/uses";

const channel = "leases:recall";
const answerChannel = (instance: string) => `${channel}:${instance}`;

export interface ReturnRequest {
  readonly account?: string | undefined;
  /** The instance that asks. */
  readonly from: string;
}

/** Requests between instances to return what their leases do not use. */
export interface ReturnRequests {
  /** Asks for the leases of one account, or of all accounts. No answer is awaited. */
  ask(account?: string): void;
  /**
   * Asks for the leases of an account, and resolves once these instances have answered that MongoDB has what they returned, or
   * after `ms`, to those that have.
   */
  recall(account: string, instances: readonly string[], ms: number): Promise<ReadonlySet<string>>;
  /** `giveBack` resolves once MongoDB has what this instance returns. */
  onAsked(giveBack: (request: ReturnRequest) => Promise<unknown>): void;
}

/**
 * A request is `<instance> [<account> [<number>]]`, on a channel that all instances read. If it has a number, it is answered
 * with `<number> <instance>` on a channel of the instance that asks. `subscriber` is a connection used only for this.
 */
export async function createReturnRequests(
  deps: Uses<"clock" | "log"> & {
    readonly instance: string;
    readonly subscriber: RedisClient;
    readonly commands: RedisClient;
  },
): Promise<ReturnRequests> {
  const { instance, subscriber, commands, clock, log } = deps;
  const channels = [channel, answerChannel(instance)];
  /** Receive the instances that answer, by the number of the request. */
  const recalls = new Map<number, (from: string) => void>();
  let count = 0;
  await subscriber.subscribe(...channels);
  subscriber.on("ready", () => {
    subscriber
      .subscribe(...channels)
      .catch((error: Error) => log.warn({ err: error.message }, "could not subscribe to return requests again"));
  });
  subscriber.on("message", (to, text) => {
    if (to !== answerChannel(instance)) return;
    const [number, from = ""] = text.split(" ");
    recalls.get(Number(number))?.(from);
  });
  const publish = (to: string, text: string) =>
    commands
      .publish(to, text)
      .catch((error: Error) => log.warn({ err: error.message }, "could not request or return unused leases"));
  return {
    ask: (account) => void publish(channel, account === undefined ? instance : `${instance} ${account}`),
    async recall(account, instances, ms) {
      const number = count++;
      const returned = new Set<string>();
      const { promise: all, resolve } = Promise.withResolvers<void>();
      recalls.set(number, (from) => {
        returned.add(from);
        if (instances.every((each) => returned.has(each))) resolve();
      });
      void publish(channel, `${instance} ${account} ${number}`);
      await atMost(clock, ms, all);
      recalls.delete(number);
      return returned;
    },
    onAsked(giveBack) {
      subscriber.on("message", (to, text) => {
        const [from = "", account, number] = text.split(" ");
        if (to !== channel || from === instance) return;
        const returned = giveBack({ from, account });
        if (number !== undefined) void returned.then(() => publish(answerChannel(from), `${number} ${instance}`));
      });
    },
  };
}
