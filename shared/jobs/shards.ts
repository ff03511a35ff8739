import { createHash } from "node:crypto";
import type { Uses } from "#platform/uses";
import { type Pool, pools } from "./catalog.ts";

/**
 * The queues of the pools. A pool has one queue with its own name. The chat pool may have several, `chat`, `chat-1` and
 * so on, each with the calls of some accounts. `{chat}:shards` holds the highest number of all API instances for a day
 * (docs/adr/0023).
 */
const announcedSeconds = 86_400;

/** All keys of a queue, and everything that belongs to it, share one hash tag. */
export const prefixOf = (queue: string): string => `{${queue}}`;
export const sharedKey = (queue: string, name: string): string => `${prefixOf(queue)}:${name}`;

const shardName = (shard: number) => (shard === 0 ? "chat" : `chat-${shard}`);

export function shardOf(account: string, count: number): string {
  if (count === 1) return "chat";
  const hash = createHash("sha1").update(account).digest().readUInt32BE();
  return shardName(hash % count);
}

const shardsKey = sharedKey("chat", "shards");

export function createShards({ redis, own }: Uses<"redis"> & { own: number }) {
  /** The number never decreases, because there may be jobs in all of them. */
  let known = own;

  async function read(): Promise<number> {
    const announced = Number.parseInt((await redis.get(shardsKey)) ?? "0", 10) || 0;
    known = Math.max(known, announced);
    return announced;
  }

  const namesOf = (pool: Pool): readonly string[] =>
    pool === "chat" ? Array.from({ length: known }, (_, shard) => shardName(shard)) : [pool];

  const announce = async (): Promise<void> => {
    const announced = await read();
    if (announced < own) await redis.set(shardsKey, own, "EX", announcedSeconds);
    else if (announced === own) await redis.expire(shardsKey, announcedSeconds);
  };
  const all = (): readonly string[] => pools.flatMap(namesOf);

  return { read, announce, namesOf, all };
}
