import { Redis } from "ioredis";
import { mongo } from "mongoose";
import { objectKeys } from "../chaos/run/aftermath.ts";

export type Stores = Awaited<ReturnType<typeof watchStores>>;
export type Leftovers = Awaited<ReturnType<Stores["found"]>>;

/** Expiry runs once a minute. */
const lateMs = 120_000;

/**
 * One of each for a queue: its bounded events, its counters, and the next run of each scheduled job, named for its time.
 */
const queueState = /:(events|id|pc)$|:repeat:[a-z-]+:\d+$/;

/** Files and results are kept for 24 h; hours of traffic are counted for 24 h after they ended. */
const keptMs = 26 * 3_600_000;

interface Stored {
  readonly _id: string;
}

/** Reports the data that requests add to the stores, which are idle at the start. */
export async function watchStores(env: Readonly<Record<string, string>>) {
  const redis = new Redis(env["REDIS_URL"] ?? "");
  const client = await new mongo.MongoClient(env["MONGODB_URI"] ?? "").connect();
  const database = client.db();

  async function redisKeys() {
    const names = await redis.keys("*");
    const remainingMs = await Promise.all(names.map((name) => redis.pttl(name)));
    return {
      lasting: names.filter((name, at) => remainingMs[at] === -1 && !queueState.test(name)),
      expiring: remainingMs.filter((ms) => ms > 0).length,
      longestMs: Math.max(0, ...remainingMs),
    };
  }
  const atRest = await redisKeys();

  const uploads = database.collection<Stored>("uploads");
  const count = (name: string, filter: object) => database.collection(name).countDocuments(filter);

  return {
    /** Uploads that a caller has begun and not completed. */
    pendingUploads: async () => (await uploads.find({ status: "pending" }).toArray()).map(({ _id }) => _id),

    async found() {
      const keys = await redisKeys();
      return {
        lastingRedisKeys: keys.lasting.filter((name) => !atRest.lasting.includes(name)),
        strayObjects: (await objectKeys(env, database)).stray,
        accountsWithHolds: await count("accounts", { $or: [{ openHolds: { $ne: 0 } }, { held: { $ne: 0n } }] }),
        negativeBalances: await count("accounts", { available: { $lt: 0 } }),
        overdueUploads: await count("uploads", { status: "pending", dueAt: { $lt: new Date(Date.now() - lateMs) } }),
        expiringRedisKeys: keys.expiring,
        lastExpiryMs: keys.longestMs,
      };
    },

    async close(): Promise<void> {
      redis.disconnect();
      await client.close();
    },
  };
}

/** Names unexpected leftovers. Redis keys that expire in time are allowed. */
export function faultsOf({ lastExpiryMs, ...leftovers }: Leftovers): string[] {
  const faults = Object.entries(leftovers).flatMap(([name, value]) =>
    name === "expiringRedisKeys" || (typeof value === "number" ? value === 0 : value.length === 0)
      ? []
      : `${name}: ${JSON.stringify(value)}`,
  );
  return lastExpiryMs > keptMs ? [...faults, `a key in Redis expires in ${lastExpiryMs} ms`] : faults;
}
