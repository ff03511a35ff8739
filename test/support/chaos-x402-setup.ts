import { leaseEnded, openCollection, ready, redisOf } from "./chaos-setup.ts";
import { keysOf } from "./jobs-setup.ts";
import type { Stores } from "./servers.ts";
import { type Environment, shortApiTimeout, spawnApi, spawnWorker } from "./service.ts";
import { startWorld } from "./x402-setup.ts";

/** A worker and two API processes that accept payments: `api` is the one to damage, `client` belongs to the other. */
export async function startPair(hurt: { stores?: (stores: Stores) => Promise<Stores>; env?: Environment } = {}) {
  const world = await startWorld();
  const { stores } = world;
  const env = { ...world.env, ...shortApiTimeout, ...hurt.env };
  const redis = redisOf(stores);
  const leases = new Set<string>();
  /** Another API process. `leaseEnded` resolves when the others presume it dead. */
  async function another(theirs: Stores = stores) {
    const api = await spawnApi(theirs, env);
    await ready(api.client);
    const lease = (await keysOf(redis, "reply:*")).find((key) => !leases.has(key)) as string;
    leases.add(lease);
    return { ...api, leaseEnded: () => leaseEnded(redis, lease) };
  }
  const theirs = (await hurt.stores?.(stores)) ?? stores;
  const [worker, api] = await Promise.all([spawnWorker(stores, env), another(theirs)]);
  const { client } = await another();
  return { ...world, env, worker, api, client, another, quotes: await quotesOf(stores) };
}

/** The quotes, to shift their times. */
async function quotesOf(stores: Stores) {
  const collection = await openCollection<{ _id: string; state: string; lookAt?: Date }>(stores, "quotes");
  return {
    state: async (memo: string) => (await collection.findOne({ _id: memo }))?.state,
    /** Ends the claim of a dead process. */
    endClaim: (memo: string) => collection.updateOne({ _id: memo }, { $set: { lookAt: new Date(0) } }),
  };
}
