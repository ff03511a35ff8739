import { expect, test } from "vitest";
import {
  expectBooks,
  heldBy,
  losing,
  otherText,
  redisPair,
  startLoad,
  startTwoOfEach,
} from "../support/chaos-failover-setup.ts";
import { callCounts, startProvider } from "../support/chaos-setup.ts";
import { testStores, withRedis } from "../support/servers.ts";
import { eventually, shortTimeouts, spawnWorker } from "../support/service.ts";

const callers = 16;
const half = callers / 2;

test.for([
  { what: "while those that it knows as waiting run", running: true },
  { what: "after those that it knows as waiting were answered", running: false },
])(
  "a replica takes over without the latest calls, $what: everybody is answered or refused, the books agree",
  async ({ running }) => {
    const pair = await redisPair();
    const stores = withRedis(await testStores(), { REDIS_URL: pair.address });
    const { provider, env } = await startProvider(shortTimeouts);
    // Two workers: half of the calls wait, some of them in a group that has begun.
    const { bases, client } = await startTwoOfEach(stores, { ...env, WORKER_CONCURRENCY_CHAT: String(half / 2) });
    const customer = await client.account("100");
    const load = startLoad(bases, customer, callers);
    await load.answers(2);
    const counts = () => callCounts(pair.primary().control, "chat");
    const full = () =>
      eventually(async () => {
        const { waiting, active } = await counts();
        return provider.inFlight() === half && waiting + active === callers;
      });

    const known = Promise.withResolvers<void>();
    provider.always(heldBy(known.promise));
    await full();
    const failover = await losing(pair);

    // Calls that run according to the replica are answered, calls that wait there run, and new calls are unknown to it.
    const later = Promise.withResolvers<void>();
    provider.always(running ? heldBy(later.promise) : {});
    known.resolve();
    if (!running) {
      await load.answers(2);
      provider.always(heldBy(later.promise));
    }
    await full();
    if (running) {
      // The new worker has free slots for the replica's waiting calls, which run a second time while the first attempts
      // continue.
      await spawnWorker(stores, env);
      await eventually(async () => (await counts()).waiting === 0);
      provider.always({ text: otherText });
    }
    await failover.end();
    if (running) {
      const before = load.ended.length;
      await eventually(async () => (await counts()).waiting === 0 && load.ended.length >= before + callers);
    }
    provider.always();
    later.resolve();

    await load.answers(3);
    await expectBooks(client, customer, await load.stop());
    await eventually(async () => (await counts()).active === 0);
    expect((await counts()).waiting).toBe(0);
  },
);
