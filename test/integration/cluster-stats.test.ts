import { expect, test } from "vitest";
import { batchesSchema, createBatches } from "#batches";
import { createClusterStats } from "#cluster-stats";
import { loadConfig } from "#platform/config";
import { connectRedis, startRedis } from "#platform/redis";
import { checkSome, countStored } from "../../workers/handlers/cluster-stats.ts";
import { log } from "../support/jobs-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { held, holdOf, minuteMs, openAccount, startBank } from "../support/money-setup.ts";
import { migrated } from "../support/schema.ts";
import { testStores } from "../support/servers.ts";
import { insertBatches } from "../support/stored-batches.ts";

async function start() {
  const bank = await startBank();
  const redis = connectRedis(loadConfig({ ...(await testStores()) }), "waiting", log);
  await startRedis(redis);
  const time = createManualClock();
  const files = { counts: async () => ({ uploads: { pending: 0, active: 0, due: 0 }, dueSince: undefined }) };
  const payments = { countBuybacks: async () => ({ open: 0, due: 0, done: 0 }) };
  await migrated(bank.mongo, [batchesSchema]);
  const unused = async () => {
    throw new Error("no line is run here");
  };
  const batches = createBatches({
    ...bank,
    files: { putAnswer: unused, getAnswer: unused, deleteAnswer: unused },
    webhooks: { record: async () => {} },
    claimMs: 30_000,
    log,
  });
  const deps = {
    ...bank,
    batches,
    files,
    payments,
    clusterStats: createClusterStats({ redis, clock: time }),
    clock: bank.clock,
  };
  const read = async () => {
    time.advance(minuteMs);
    return deps.clusterStats.read();
  };
  return { ...bank, deps, read, end: () => redis.disconnect() };
}

test("the ledger is checked part by part, and a difference shows before all accounts are checked and until they are again", async () => {
  const { money, mongo, deps, read, end } = await start();
  const accounts = mongo.connection.collection<{ _id: string; available: bigint }>("accounts");
  const [template] = await accounts.find().toArray();
  const many = Array.from({ length: 1_000 }, (_, at) => ({ ...template, _id: `acct_~${at}`, available: 0n }));
  await accounts.insertMany(many as never);
  const wrong = await openAccount(money, 1_000n);
  await accounts.updateOne({ _id: wrong }, { $inc: { available: 3n } });

  await checkSome(deps, 1);
  expect((await read()).check).toMatchObject({ current: { differenceNanoUsd: "3", faults: 1 } });
  expect((await read()).check?.complete).toBeUndefined();
  await checkSome(deps, 1);
  expect((await read()).check).toEqual({ complete: { differenceNanoUsd: "3", faults: 1, at: expect.any(Number) } });

  await accounts.updateOne({ _id: wrong }, { $inc: { available: -3n } });
  await checkSome(deps, 1);
  expect((await read()).check).toMatchObject({ complete: { differenceNanoUsd: "3" }, current: { faults: 0 } });
  await checkSome(deps, 1);
  expect((await read()).check).toMatchObject({ complete: { differenceNanoUsd: "0", faults: 0 } });
  end();
});

test("open holds are counted with their age, and those not captured once they have expired", async () => {
  const { money, account, clock, deps, read, end } = await start();
  await countStored(deps);
  expect((await read()).counts).toMatchObject({ holds: { open: 0 }, leases: { open: 0 }, undecided: 0 });
  const heldAt = clock.now();
  await held(money, holdOf(account, 100n, { expiresAt: heldAt + minuteMs }));
  await held(money, holdOf(account, 100n, { expiresAt: heldAt + 60 * minuteMs }));
  const heldUntil = clock.now();
  clock.later(2 * minuteMs);
  await countStored(deps);
  const { counts } = await read();
  expect(counts).toMatchObject({ holds: { open: 2 }, leases: { open: 0 }, undecided: 1 });
  expect(counts?.holds.oldestAt).toBeGreaterThanOrEqual(heldAt);
  expect(counts?.holds.oldestAt).toBeLessThanOrEqual(heldUntil);
  end();
});

test("open batches are as old as the oldest of each status, and stalled ones are those whose turn it is", async () => {
  const { uri, account, clock, deps, read, end } = await start();
  const now = clock.now();
  const at = (minutes: number) => new Date(now + minutes * minuteMs);
  const openai = { account, kind: "openai", status: "in_progress" } as const;
  const counted = async () => {
    await countStored(deps);
    return (await read()).counts?.batches;
  };
  expect(await counted()).toEqual({ oldestAt: {} });

  await insertBatches({ MONGODB_URI: uri }, [
    { ...openai, createdAt: at(-90), dueAt: at(-70), progressAt: at(-80) },
    { ...openai, createdAt: at(-60), dueAt: at(0), progressAt: at(-55), paused: "insufficient_balance" },
    { ...openai, status: "validating", createdAt: at(-7), dueAt: at(0) },
    { ...openai, status: "validating", createdAt: at(-9), dueAt: at(0) },
    { ...openai, status: "completed", createdAt: at(-100), progressAt: at(-99) },
  ]);
  const oldestAt = { in_progress: at(-90).getTime(), validating: at(-9).getTime() };
  // No process works at the one that waits.
  expect(await counted()).toEqual({ oldestAt, stalledSince: at(-80).getTime() });

  await insertBatches({ MONGODB_URI: uri }, [{ ...openai, createdAt: at(-50), dueAt: at(10), progressAt: at(-40) }]);
  expect(await counted()).toEqual({ oldestAt, stalledSince: at(-40).getTime() });

  // The turn of the one that has waited for an hour comes.
  const claimed = await deps.batches.claim("api_test", ["in_progress"]);
  expect(claimed?.progressAt?.getTime()).toBeGreaterThanOrEqual(now);
  expect(await counted()).toEqual({ oldestAt, stalledSince: at(-40).getTime() });
  end();
});
