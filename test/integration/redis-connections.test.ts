import type { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { loadConfig } from "#platform/config";
import { connectCacheRedis } from "#platform/redis";
import { log } from "../support/jobs-setup.ts";
import { ownServers, testStores } from "../support/servers.ts";
import { eventually } from "../support/service.ts";

test("commands of the cache fail at once while its Redis is down or hangs, and work again without a restart", async () => {
  const { cache, stores } = await ownServers({ cache: true });
  await cache.stop();
  const ofQueues = { REDIS_USERNAME: "queues", REDIS_PASSWORD: "queues", REDIS_TLS: "on", REDIS_DATABASE: "3" };
  const redis = connectCacheRedis(loadConfig({ ...stores, ...ofQueues }), log) as Redis;
  onTestFinished(() => redis.disconnect());
  const works = () => eventually(() => redis.set("a", "1").catch(() => undefined));
  await expect(redis.get("a")).rejects.toThrow(/enableOfflineQueue/);
  await cache.start();
  expect(await works()).toBe("OK");
  expect(await redis.client("INFO")).toMatch(/ db=0 .* user=default /);
  expect(await redis.config("GET", "maxmemory*")).toEqual(
    expect.arrayContaining(["maxmemory-policy", "allkeys-lru", String(256 * 1024 ** 2)]),
  );

  await cache.kill("SIGSTOP");
  await expect(redis.get("a")).rejects.toThrow(/max retries/);
  await cache.kill("SIGCONT");
  expect(await works()).toBe("OK");
});

test("without an address there is no connection of the cache", async () => {
  expect(connectCacheRedis(loadConfig({ ...(await testStores()), CACHE_REDIS_URL: "" }), log)).toBeUndefined();
});
