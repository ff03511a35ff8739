import mongoose from "mongoose";
import { expect, onTestFinished, test } from "vitest";
import { exactTypes } from "../../shared/money/archive/file.ts";
import { dayMs } from "../../shared/platform/clock.ts";
import {
  captureOf,
  held,
  holdOf,
  leasedCapture,
  leaseRequestOf,
  leasesOf,
  minuteMs,
  startBank,
  startMoney,
} from "../support/money-setup.ts";
import { ownServers } from "../support/servers.ts";

type Dump = ReadonlyMap<string, { readonly indexes: readonly object[]; readonly documents: readonly Buffer[] }>;
const { BSON, MongoClient } = mongoose.mongo;

async function databaseOf(uri: string) {
  const client = await MongoClient.connect(uri);
  onTestFinished(() => client.close());
  return { client, db: client.db() };
}

/**
 * BSON and indexes by collection, at one moment: like those of `mongodump --oplog` and a snapshot of the file system.
 */
async function dump(uri: string): Promise<Dump> {
  const { client, db } = await databaseOf(uri);
  const names = (await db.listCollections().toArray()).map(({ name }) => name);
  return client.withSession({ snapshot: true }, async (session) => {
    const all = new Map<string, Dump extends ReadonlyMap<string, infer Collection> ? Collection : never>();
    for (const name of names) {
      const documents = await db.collection(name).find({}, { session, raw: true }).toArray();
      const indexes = await db.collection(name).indexes();
      all.set(name, { indexes, documents: documents as unknown as Buffer[] });
    }
    return all;
  });
}

async function restore(uri: string, dumped: Dump): Promise<void> {
  const { db } = await databaseOf(uri);
  for (const [name, { indexes, documents }] of dumped) {
    await db.createCollection(name);
    await db.collection(name).createIndexes(indexes as mongoose.mongo.IndexDescription[]);
    const parsed = documents.map((bytes) => BSON.deserialize(bytes, exactTypes));
    if (parsed.length > 0) await db.collection(name).insertMany(parsed);
  }
}

test("a dump under load is restored into a fresh MongoDB: holds and leases end, and the check is exact", async () => {
  const { money, uri, clock, account } = await startBank({ balanceNanoUsd: 10_000n });
  const expiresAt = clock.now() + 10 * minuteMs;
  const leases = leasesOf(money, "api_before");
  const takeFromLease = async () => {
    const request = leaseRequestOf(account, 100n, { expiresAt });
    return { request, leased: await leases.hold(request) };
  };
  const [running, captured, settled] = [
    await held(money, holdOf(account, 100n)),
    await held(money, holdOf(account, 100n)),
    await held(money, holdOf(account, 100n)),
  ];
  const [leasedRunning, leasedCaptured] = [await takeFromLease(), await takeFromLease()];
  await money.capture(captureOf(captured, 40n));
  await money.charge(captureOf(settled, 10n));
  await money.capture(leasedCapture(leasedCaptured.request, leasedCaptured.leased, 7n));
  const [dumped, , , later] = await Promise.all([
    dump(uri),
    money.charge(captureOf(running, 99n)),
    money.capture(leasedCapture(leasedRunning.request, leasedRunning.leased, 88n)),
    held(money, holdOf(account, 50n)),
  ]);
  await money.charge(captureOf(later, 50n));
  await money.credit(account, { amountNanoUsd: 5_000n, idempotencyKey: "after the dump" });
  leases.abandon();

  const { mongo: fresh } = await ownServers({ mongo: true });
  const freshUri = fresh.env["MONGODB_URI"] as string;
  await restore(freshUri, dumped);
  const { money: restored, mongo } = await startMoney(freshUri, clock);
  const exact = { ok: true, differenceNanoUsd: 0n };
  expect(await restored.check()).toMatchObject(exact);
  expect((await restored.account(account))?.heldNanoUsd).toBeGreaterThan(0n);

  clock.later(dayMs);
  const gone = async () => false;
  await restored.sweep(gone, gone);
  await restored.checkpoint();
  for (const full of [false, true])
    expect(await restored.check({ full })).toMatchObject({ ...exact, openHolds: 0, undecided: 0 });
  const entries = await mongo.connection.collection("ledger").find({ account, kind: "usage" }).toArray();
  const spent = entries.reduce((sum, entry) => sum - (entry["amount"] as bigint), 0n);
  expect(await restored.account(account)).toMatchObject({ availableNanoUsd: 10_000n - spent, heldNanoUsd: 0n });
  // Captures before the dump are valid; calls that only began before it cost nothing, or their captured cost.
  expect(spent).toBeGreaterThanOrEqual(57n);
  expect(await restored.entry(account, running.requestId)).toBeDefined();
  // The dump does not have the credit, so the same key adds it again.
  const again = { amountNanoUsd: 5_000n, idempotencyKey: "after the dump" };
  expect(await restored.credit(account, again)).toMatchObject({ created: true });
});
