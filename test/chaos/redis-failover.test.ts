import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import type { Server } from "../../infra/embedded/index.ts";
import { expectBooks, heldBy, startLoad, startTwoOfEach } from "../support/chaos-failover-setup.ts";
import { callCounts, redisOf, startProvider } from "../support/chaos-setup.ts";
import { ownRedisCluster, ownSentinels, testStores, withRedis } from "../support/servers.ts";
import { eventually, shortApiTimeout } from "../support/service.ts";

const controlOf = ({ port }: Server) => {
  const control = new Redis(port, "127.0.0.1", { maxRetriesPerRequest: null });
  control.on("error", () => {});
  onTestFinished(() => control.disconnect());
  return control;
};

async function sentinelPair() {
  const { primary, replica, sentinels, env } = await ownSentinels();
  await Promise.all(
    sentinels.map(controlOf).map((sentinel) =>
      eventually(async () => {
        const [known, quorum] = await Promise.all([
          sentinel.call("SENTINEL", "REPLICAS", "mymaster"),
          sentinel.call("SENTINEL", "CKQUORUM", "mymaster").catch(() => ""),
        ]);
        return (known as unknown[]).length === 1 && String(quorum).startsWith("OK 3");
      }),
    ),
  );
  return { primary, replica, env };
}

/** The primary that stores the queue of chat calls, and its replica. */
async function clusterPair() {
  const { servers, env } = await ownRedisCluster(true);
  const serves = (server: Server) =>
    controlOf(server)
      .exists("{chat}")
      .then(
        () => true,
        () => false,
      );
  const index = (await Promise.all(servers.slice(0, 3).map(serves))).indexOf(true);
  return { primary: servers[index] as Server, replica: servers[index + 3] as Server, env };
}

test.for([
  { what: "Sentinel", open: sentinelPair },
  { what: "a cluster", open: clusterPair },
])("the primary of $what is killed under load: its replica takes over, the books are exact", async ({ open }) => {
  const { primary, replica, env: address } = await open();
  const stores = withRedis(await testStores(), address);
  const { provider, env } = await startProvider(shortApiTimeout);
  const { bases, client } = await startTwoOfEach(stores, env);
  const customer = await client.account("100");
  const held = startLoad(bases, customer, 8);
  await held.answers(2);
  const gate = Promise.withResolvers<void>();
  provider.always(heldBy(gate.promise));
  await eventually(() => provider.inFlight() === 8);
  provider.always();
  const load = startLoad(bases, customer, 8);
  await load.answers(2);

  await primary.kill();
  await eventually(() => load.ended.some(({ answered }) => !answered));
  gate.resolve();
  await eventually(async () => (await controlOf(replica).info("replication")).includes("role:master"));
  await Promise.all([held.answers(3), load.answers(3)]);

  const calls = [...(await held.stop()), ...(await load.stop())];
  expect(calls.some(({ answered }) => answered)).toBe(true);
  await expectBooks(client, customer, calls);
  // A job whose acknowledgement was lost with the primary ends when another worker finds that its lock has expired.
  await eventually(async () => (await callCounts(redisOf(stores), "chat")).active === 0);
});
