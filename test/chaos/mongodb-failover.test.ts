import { expect, test } from "vitest";
import { expectBooks, heldBy, mongoMember, startLoad, startTwoOfEach } from "../support/chaos-failover-setup.ts";
import { startProvider } from "../support/chaos-setup.ts";
import { ownMongoSet, testStores } from "../support/servers.ts";
import { eventually, shortApiTimeout } from "../support/service.ts";

const callers = 16;

test("the primary of three steps down under load, the next is killed and comes back: nothing is lost, nothing doubled", async () => {
  const set = (await ownMongoSet()).map(mongoMember);
  const primary = () =>
    eventually(async () => {
      for (const member of set) if (await member.isPrimary()) return member;
      return undefined;
    });
  const stores = { ...(await testStores()), ...set[0]?.server.env };
  const { provider, env } = await startProvider(shortApiTimeout);
  const { bases, client } = await startTwoOfEach(stores, env);
  const customer = await client.account("100");
  const load = startLoad(bases, customer, callers);
  await load.answers(5);
  const everyCallHeld = async () => {
    const gate = Promise.withResolvers<void>();
    provider.always(heldBy(gate.promise));
    await eventually(() => provider.inFlight() === callers);
    provider.always();
    return gate;
  };

  const former = await primary();
  const gate = await everyCallHeld();
  await former.stepDown();
  gate.resolve();
  await eventually(async () => (await primary()) !== former);
  await load.answers(5);

  // Only this primary has its part of the charges: the others do not replicate.
  const doomed = await primary();
  const others = set.filter((member) => member !== doomed);
  const last = await everyCallHeld();
  for (const other of others) await other.hold(true);
  last.resolve();
  await eventually(() => provider.inFlight() === 0);
  await eventually(async () => (await doomed.uncommitted()) > 0);
  await doomed.server.kill();
  for (const other of others) await other.hold(false);
  await eventually(primary);
  await doomed.server.start();
  await load.answers(5);

  const calls = await load.stop();
  await expectBooks(client, customer, calls);
  expect(provider.requests.length).toBeGreaterThanOrEqual(calls.filter(({ answered }) => answered).length);
});
