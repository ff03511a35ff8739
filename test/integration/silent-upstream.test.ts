import { expect, test } from "vitest";
import {
  ask,
  availableUsd,
  balanceAfter,
  fullCostUsd,
  isWhole,
  never,
  onlyCall,
  outcomeOf,
  path,
  read,
  startProvider,
} from "../support/chaos-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { testStores } from "../support/servers.ts";
import { eventually, startService } from "../support/service.ts";

async function service() {
  const stores = await testStores();
  const { provider, env } = await startProvider();
  const clock = createManualClock(Date.now());
  const client = await startService(stores, { env, clock });
  // Each process reports its state every second.
  await eventually(async () => {
    clock.advance(1_000);
    return (await fetch(`${client.baseUrl}/readyz`)).ok;
  });
  const customer = await client.account("1.00");
  return { provider, clock, client, customer };
}

test("a provider that is silent for ten minutes: a ping every 15 seconds, then the answer", async () => {
  const { provider, clock, client, customer } = await service();
  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeHeaders: gate.promise });
  const answer = customer.post(path, ask({ stream: true }));
  await provider.request(0);
  // Headers are sent with the first ping: an earlier failure would have had its own status.
  clock.advance(14_000);
  expect(await Promise.race([answer.then(() => "headers"), fetch(client.baseUrl).then(() => "nothing")])).toBe(
    "nothing",
  );
  clock.advance(1_000);
  const response = await answer;
  expect(response.headers.get("content-type")).toMatch("text/event-stream");
  const stream = read(response);
  for (let pings = 1; pings <= 40; pings++) {
    await eventually(() => stream.pings() >= pings);
    expect(stream.pings()).toBe(pings);
    clock.advance(15_000);
  }
  expect(stream.events).toHaveLength(0);
  gate.resolve();
  await eventually(() => {
    clock.advance(1);
    return stream.done();
  });
  expect(await stream.ended).toBe("closed");
  expect(isWhole(stream)).toBe(true);
  expect(await onlyCall(client, customer)).toMatchObject({ amount_usd: `-${fullCostUsd}` });
  expect(await availableUsd(client, customer)).toBe(balanceAfter(1));
});

test("a call that runs out of time: a stream ends with an error event, JSON with 504, and the provider is aborted", async () => {
  const { provider, clock, client, customer } = await service();
  provider.always({ beforeHeaders: never });
  const answer = customer.post(path, ask({ stream: true }));
  await provider.request(0);
  const json = outcomeOf(customer.post(path, ask()));
  await provider.request(1);
  clock.advance(15_000);
  const stream = read(await answer);
  // The call's own deadline: 15 minutes, before that of any upstream here.
  clock.advance(785_000);
  expect(stream.events).toHaveLength(0);
  await eventually(() => {
    clock.advance(1_000);
    return stream.events.length > 0;
  });
  expect(stream.events[0]?.error).toMatchObject({ type: "server_error", code: "upstream_timeout" });
  expect(await stream.ended).toBe("closed");
  expect(stream.done()).toBe(false);
  expect(await json).toMatchObject({ status: 504, code: "upstream_timeout" });
  await Promise.all(provider.requests.map(({ closed }) => closed));
  expect(provider.requests.map(({ aborted }) => aborted)).toEqual([true, true]);
  await client.settled();
  expect(await availableUsd(client, customer)).toBe("1.00");
});
