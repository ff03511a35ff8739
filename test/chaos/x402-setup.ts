import { onTestFinished } from "vitest";
import { systemClock } from "#platform/clock";
import { createLogger } from "#platform/logger";
import { connectMongo } from "#platform/mongo";
import { startWorld } from "../integration/x402-setup.ts";
import type { Stores } from "../support/servers.ts";
import { type Environment, spawnApi, spawnWorker } from "../support/service.ts";
import { ready, redisOf } from "./setup.ts";

/** A worker and two API processes that take payments: `api` is the one to be hurt, `client` is the other's. */
export async function startPair(hurt: { stores?: (stores: Stores) => Promise<Stores>; env?: Environment } = {}) {
  const world = await startWorld();
  const { stores } = world;
  const env = { ...world.env, ...hurt.env };
  const theirs = (await hurt.stores?.(stores)) ?? stores;
  const [worker, api] = await Promise.all([spawnWorker(stores, env), spawnApi(theirs, env)]);
  await ready(api.client);
  const redis = redisOf(stores);
  const [lease] = (await redis.keys("reply:*")) as [string];
  const { client } = await spawnApi(stores, env);
  await ready(client);
  return { ...world, env, worker, api, client, endLease: () => redis.del(lease), quotes: await quotesOf(stores) };
}

/** The quotes, to move their time on. */
async function quotesOf(stores: Stores) {
  const mongo = await connectMongo(stores.MONGODB_URI, systemClock, createLogger("test", "silent"));
  onTestFinished(() => mongo.close());
  const collection = mongo.connection.collection<{ _id: string; state: string; lookAt?: Date }>("quotes");
  return {
    state: async (memo: string) => (await collection.findOne({ _id: memo }))?.state,
    /** The claim of a process that is dead is over. */
    endClaim: (memo: string) => collection.updateOne({ _id: memo }, { $set: { lookAt: new Date(0) } }),
  };
}
