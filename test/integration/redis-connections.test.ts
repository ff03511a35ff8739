import type { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { createReturnRequests } from "#money";
import { systemClock } from "#platform/clock";
import { loadConfig } from "#platform/config";
import { connectCacheRedis } from "#platform/redis";
import { connect, log } from "../support/jobs-setup.ts";
import { ownServers, testStores } from "../support/servers.ts";
import { eventually } from "../support/service.ts";
import { openWire } from "../support/wire.ts";

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

test("return requests arrive after a reconnect, and a process may stop while it subscribes again", async () => {
  const stores = await testStores({ oneServer: true });
  let isHeld = false;
  let held = 0;
  const { url, cut } = await openWire(stores.REDIS_URL, (client, redis) => {
    redis.pipe(client);
    client.on("data", (bytes) => {
      if (isHeld && bytes.includes("subscribe")) held += 1;
      else redis.write(bytes);
    });
  });
  const subscriber = await connect({ ...stores, REDIS_URL: url.href }, "subscribing");
  const commands = await connect(stores, "fail-fast");
  const returnRequests = await createReturnRequests({
    instance: "api_1",
    subscriber,
    commands,
    clock: systemClock,
    log,
  });
  const asked: string[] = [];
  // All databases of a server share its channels.
  returnRequests.onAsked(async ({ account, from }) => from === "api_2" && account && asked.push(account));

  cut();
  await eventually(async () => {
    await commands.publish("leases:recall", "api_2 acct_1");
    return asked.includes("acct_1");
  });
  isHeld = true;
  cut();
  await eventually(() => held > 0);
  // An unhandled rejection would end the process.
  subscriber.disconnect();
  await eventually(() => subscriber.status === "end");
  expect(new Set(asked)).toEqual(new Set(["acct_1"]));
});
