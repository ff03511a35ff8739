import { expect, test } from "vitest";
import { heldBy, mongoMember } from "../support/chaos-failover-setup.ts";
import { ask, path, startProcesses, startProvider } from "../support/chaos-setup.ts";
import { ownMongoSet, testStores } from "../support/servers.ts";
import { eventually, shortTimeouts, spawnWorker } from "../support/service.ts";

/** Answers a call whose entry only the primary has, then lets the primary lose it. */
async function answerAndLose(andKill: "the worker" | "nobody else") {
  const set = (await ownMongoSet()).map(mongoMember);
  const stores = { ...(await testStores()), ...set[0]?.server.env };
  const { provider, env } = await startProvider(shortTimeouts);
  const { client, worker } = await startProcesses(stores, env);
  const customer = await client.account("1");
  const primaryOf = (members: typeof set) =>
    eventually(async () => {
      for (const member of members) if (await member.isPrimary()) return member;
      return undefined;
    });
  const primary = await primaryOf(set);
  const others = set.filter((member) => member !== primary);

  const gate = Promise.withResolvers<void>();
  provider.always(heldBy(gate.promise));
  const answer = customer.post(path, ask());
  await eventually(() => provider.inFlight() === 1);
  for (const other of others) await other.hold(true);
  gate.resolve();
  expect((await answer).status).toBe(200);

  if (andKill === "the worker") worker.kill("SIGKILL");
  await primary.server.kill();
  for (const other of others) await other.hold(false);
  await primaryOf(others);
  if (andKill === "the worker") await spawnWorker(stores, env);
  await primary.server.start();
  const check = await client.settled();
  expect(check).toMatchObject({ difference_usd: "0.00", open_holds: 0, undecided: 0 });
  const { data } = await client.admin<{ data: { kind: string; amount_usd: string }[] }>(
    "GET",
    `/accounts/${customer.id}/ledger`,
  );
  return data.filter(({ kind }) => kind === "usage").map(({ amount_usd }) => amount_usd);
}

test("a charge that a failover loses after its answer is made again", async () => {
  expect(await answerAndLose("nobody else")).toEqual(["-0.000025"]);
});

test("an answer whose charge is lost with its worker is free", async () => {
  expect(await answerAndLose("the worker")).toEqual(["0.00"]);
});
