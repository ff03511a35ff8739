import type { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import { type Caller, createKeys, type Keys, type Slot } from "../../api/keys/index.ts";
import { noCapacity } from "../../shared/errors.ts";
import { keysSchema, type Limits } from "../../shared/key-records/index.ts";
import { createMoney, type Money, moneySchema } from "../../shared/money/index.ts";
import { type Clock, systemClock } from "../../shared/platform/clock.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo, type Mongo } from "../../shared/platform/mongo/connection.ts";
import { connectRedis, pingRedis, startRedis } from "../../shared/platform/redis.ts";
import { createProviderKeys, providerKeysSchema } from "../../shared/provider-keys/index.ts";
import { createManualClock } from "./manual-clock.ts";
import { ofFile } from "./of-file.ts";
import { migrated } from "./schema.ts";
import { type Stores, testStores } from "./servers.ts";
import { eventually } from "./service.ts";

export const defaults: Limits = { requestsPerMinute: 1_000, tokensPerMinute: 100_000, concurrentRequests: 100 };

export const uploads = { perMinute: 20, concurrent: 2 };

export interface Instance {
  readonly keys: Keys;
  readonly money: Money;
  readonly mongo: Mongo;
  readonly redis: Redis;
}

/** One API process's connections and cache. It ends with the test, or through `onEnd`. */
export async function startInstance(
  stores: Stores,
  clock: Clock = systemClock,
  onEnd: (stop: () => Promise<void>) => void = onTestFinished,
): Promise<Instance> {
  const log = createLogger("test", "silent");
  const mongo = await connectMongo(stores.MONGODB_URI, clock, log);
  const redis = connectRedis(loadConfig({ ...stores }), "fail-fast", log) as Redis;
  await startRedis(redis);
  onEnd(async () => {
    redis.disconnect();
    await mongo.close();
  });
  const money = createMoney({ mongo, clock, log });
  const perMinute = { addressRequestsPerMinute: 5, accountRequestsPerMinute: 1_000, failedSignInsPerMinute: 5 };
  const providerKeys = createProviderKeys({ mongo, clock });
  const keys = createKeys({ mongo, redis, money, providerKeys, clock, log, defaults, uploads, ...perMinute });
  await migrated(mongo, [moneySchema, keysSchema, providerKeysSchema]);
  return { keys, money, mongo, redis };
}

/** Resolves once a connection that broke is there again, on a cluster those to all nodes. */
export const isConnected = (redis: Redis) =>
  eventually(() =>
    pingRedis(redis).then(
      () => true,
      () => false,
    ),
  );

/** Two API instances for all tests of a file, on one database. The second has a clock that only tests move. */
export const instancesOfFile = () =>
  ofFile(
    async (onEnd) => {
      const stores = await testStores();
      const clock = createManualClock();
      return {
        clock,
        a: await startInstance(stores, systemClock, onEnd),
        b: await startInstance(stores, clock, onEnd),
      };
    },
    () => {},
  );

/** A refusal that does not count against the key. */
export const refusedBy = noCapacity("unavailable");

/**
 * Takes a slot, then the tokens, as a paid call does; the slot is released again if the tokens are refused. `isSmall`: the
 * slot takes the tokens too, if there are as many.
 */
export async function take(
  { keys }: Pick<Instance, "keys">,
  caller: Caller,
  { tokens, isSmall, ...call }: { requestId: string; tokens: number; ttlMs: number; isSmall?: boolean },
): Promise<Slot> {
  const slot = await keys.takeSlot(caller, isSmall ? { ...call, tokens } : call);
  try {
    if (slot.takenTokens < tokens) await keys.takeTokens(slot, tokens - slot.takenTokens);
    return slot;
  } catch (error) {
    await keys.release(slot, { refusedBy });
    throw error;
  }
}

/** An account with one key. */
export async function issueKey({ keys, money }: Instance, limits: Partial<Limits> = {}) {
  const account = await money.createAccount({ name: "acme" });
  const { key, secret } = await keys.issue(account.id, { limits });
  return { account, key, secret };
}
