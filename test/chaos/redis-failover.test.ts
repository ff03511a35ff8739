import { expect, test } from "vitest";
import { testStores } from "../support/servers.ts";
import { eventually, ready, spawnApi, spawnWorker } from "../support/service.ts";
import { expectBooks, redisPair, startLoad, swap } from "./failover-setup.ts";
import { startMaker } from "./setup.ts";

test("Redis is swapped with its replica twice under load, and no connection ends: everybody follows", async () => {
  const pair = await redisPair();
  const stores = { ...(await testStores()), REDIS_URL: pair.address };
  const { maker, env } = await startMaker();
  const workers = [spawnWorker(stores, env), spawnWorker(stores, env)];
  const apis = await Promise.all([spawnApi(stores, env), spawnApi(stores, env)]);
  await Promise.all(workers);
  await Promise.all(apis.map(({ client }) => ready(client)));
  const [{ client }] = apis;
  const customer = await client.account("100");
  const load = startLoad(
    apis.map(({ client: { baseUrl } }) => baseUrl),
    customer,
    16,
  );
  await load.answers(5);

  // With every call at the maker, then with every stream in its middle while other calls come and go.
  for (const [inside, gated] of [
    [16, "beforeHeaders"],
    [8, "beforeEvent"],
  ] as const) {
    const gate = Promise.withResolvers<void>();
    maker.always(gated === "beforeEvent" ? { beforeEvent: { 3: gate.promise } } : { beforeHeaders: gate.promise });
    await eventually(() => maker.inFlight() >= inside);
    await swap(pair);
    maker.always();
    gate.resolve();
    await load.answers(5);
    await eventually(() => pair.behind() === 0);
  }

  const calls = await load.stop();
  await expectBooks(client, customer, calls);
  expect(await pair.primary().control.llen("bull:chat:active")).toBe(0);
});
