import { expect, test } from "vitest";
import { expectBooks, heldBy, redisPair, startLoad, startTwoOfEach, swap } from "../support/chaos-failover-setup.ts";
import { callCounts, startProvider } from "../support/chaos-setup.ts";
import { testStores, withRedis } from "../support/servers.ts";
import { eventually } from "../support/service.ts";

const callers = 16;

test("Redis is swapped with its replica twice under load, and no connection ends: all processes follow", async () => {
  const pair = await redisPair();
  const stores = withRedis(await testStores(), { REDIS_URL: pair.address });
  const { provider, env } = await startProvider();
  const { bases, client } = await startTwoOfEach(stores, env);
  const customer = await client.account("100");
  const load = startLoad(bases, customer, callers);
  await load.answers(5);

  for (let swaps = 0; swaps < 2; swaps++) {
    const gate = Promise.withResolvers<void>();
    provider.always(heldBy(gate.promise));
    await eventually(() => provider.inFlight() === callers);
    await swap(pair);
    provider.always();
    gate.resolve();
    await load.answers(5);
    await eventually(() => pair.behind() === 0);
  }

  const calls = await load.stop();
  await expectBooks(client, customer, calls);
  expect((await callCounts(pair.primary().control, "chat")).active).toBe(0);
});
