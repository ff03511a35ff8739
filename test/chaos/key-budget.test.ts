import { expect, test } from "vitest";
import { keyOf } from "../support/account-caller.ts";
import { startTwoOfEach } from "../support/chaos-failover-setup.ts";
import {
  ask,
  availableUsd,
  balanceAfter,
  fullCostUsd,
  path,
  restartEmpty,
  startProvider,
} from "../support/chaos-setup.ts";
import { ownServers } from "../support/servers.ts";
import { eventually, shortApiTimeout } from "../support/service.ts";

test("Redis comes back empty: the budget of a key has the spent amount, for concurrent calls through two APIs", async () => {
  const { stores } = await ownServers({ redis: true });
  const { provider, env } = await startProvider(shortApiTimeout);
  const { bases, client } = await startTwoOfEach(stores, env);
  const customer = await client.account("1.00");
  const post = (key: string, at: number) =>
    fetch(`${bases[at % 2]}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(ask()),
    });
  const tiny = await keyOf(client, customer.id, { budget: { limit_usd: "0.000000001", period: "day" } });
  const bound = Number(/this call can cost ([\d.]+) USD/.exec(await (await post(tiny.key, 0)).text())?.[1]);
  // A call is admitted while at most ten earlier calls were charged in addition to the bound.
  const limit = (bound + 10.5 * Number(fullCostUsd)).toFixed(9);
  const { key, ask: askKey } = await keyOf(client, customer.id, { budget: { limit_usd: limit, period: "day" } });
  const call = async (_: unknown, at: number) => {
    const response = await post(key, at);
    await response.text();
    return response.status;
  };
  const sideBySide = () => Promise.all(Array.from({ length: 40 }, call));

  const statuses = await sideBySide();
  await eventually(async () => {
    statuses.push(await call(0, statuses.length));
    return statuses.at(-1) === 402;
  });
  expect(new Set(statuses)).toEqual(new Set([200, 402]));
  expect(provider.requests).toHaveLength(11);

  await restartEmpty(stores);
  // Each API learns of the workers again within a second or two. A call that is admitted would reach the provider.
  await eventually(async () => (await sideBySide()).every((status) => status === 402));
  expect(provider.requests).toHaveLength(11);
  await client.settled();
  expect(await availableUsd(client, customer)).toBe(balanceAfter(11));
  expect((await askKey("GET", "/key")).body.budget?.spent_usd).toBe("0.000275");
});
