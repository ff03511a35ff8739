import { expect, test } from "vitest";
import { ownMongoSet, testStores } from "../support/servers.ts";
import { eventually } from "../support/service.ts";
import { expectBooks, heldBy, type MongoMember, mongoMember, startLoad, startTwoOfEach } from "./failover-setup.ts";
import { startMaker } from "./setup.ts";

const callers = 16;

test("the primary of three steps down under load, the next is killed and comes back: nothing is lost, nothing doubled", async () => {
  const set = (await ownMongoSet()).map(mongoMember);
  const primary = () =>
    eventually(async () => {
      for (const member of set) if (await member.isPrimary()) return member;
      return undefined;
    });
  const stores = { ...(await testStores()), ...set[0]?.server.env };
  const { maker, env } = await startMaker();
  const { bases, client } = await startTwoOfEach(stores, env);
  const customer = await client.account("100");
  const load = startLoad(bases, customer, callers);
  await load.answers(5);

  const stepDown = (former: MongoMember) => former.stepDown();
  const kill = (former: MongoMember) => former.server.kill();
  for (const end of [stepDown, kill]) {
    const former = await primary();
    const gate = Promise.withResolvers<void>();
    maker.always(heldBy(gate.promise));
    await eventually(() => maker.inFlight() === callers);
    maker.always();
    await end(former);
    gate.resolve();
    await eventually(async () => (await primary()) !== former);
    if (end === kill) await former.server.start();
    await load.answers(5);
  }

  const calls = await load.stop();
  await expectBooks(client, customer, calls);
  expect(maker.requests.length).toBeGreaterThanOrEqual(calls.filter(({ answered }) => answered).length);
});
