import type { RedisClient } from "#platform/redis";

const deliveredKey = (note: string) => `delivered:${note}`;
/** Keeps the key, and with it its time to live, while no call is in it. */
const placeholder = "";

/**
 * The calls that an API instance has delivered since its last note in MongoDB, or whose callers have disconnected. It tells
 * Redis in the turn of the event loop in which that happens. `note` is the note's id.
 */
export function createDelivered(deps: {
  /** Writes a command to its connection at once, not at the end of the turn. */
  redis: RedisClient;
  note: string;
  /** The time for which they are kept after the last note. */
  lifetimeMs: number;
}) {
  const { redis, lifetimeMs } = deps;
  const key = deliveredKey(deps.note);
  let count = 0;
  return {
    /** If the command is lost, the next note has the call. */
    add: (requestId: string): void => void redis.zadd(key, ++count, requestId).catch(() => {}),
    /** The number of calls added so far. */
    count: (): number => count,
    /** Removes the first `noted` calls, and keeps the others. */
    async keep(noted: number): Promise<void> {
      const commands = [
        redis.zadd(key, 0, placeholder),
        redis.pexpire(key, lifetimeMs),
        redis.zremrangebyscore(key, 1, noted),
      ];
      await Promise.allSettled(commands);
    },
    async end(): Promise<void> {
      await redis.del(key).catch(() => {});
    },
  };
}

export const deliveredSince = async (redis: RedisClient, note: string): Promise<ReadonlySet<string>> =>
  new Set(await redis.zrange(deliveredKey(note), 0, "-1"));
