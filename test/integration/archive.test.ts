import { GetObjectCommand, ListObjectsV2Command } from "@aws-sdk/client-s3";
import type { mongo as driver } from "mongoose";
import { expect, test } from "vitest";
import { exactTypes } from "../../shared/money/archive/file.ts";
import { expiresArchives } from "../../shared/money/archive/objects.ts";
import { createMoney, paymentAccount } from "../../shared/money/index.ts";
import { dayMs } from "../../shared/platform/clock.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import {
  archivedLines,
  expectExact,
  ledgerIds,
  log,
  retentionDays,
  sizes,
  startArchive,
} from "../support/archive-setup.ts";
import {
  captureOf,
  held,
  holdOf,
  leasedCapture,
  leaseRequestOf,
  leasesOf,
  openAccount,
  times,
} from "../support/money-setup.ts";

type Bank = Awaited<ReturnType<typeof startArchive>>;

/** Makes calls that are captured and settled, and returns their ids. */
const calls = ({ money, clock }: Bank, account: string, count: number) =>
  Promise.all(
    times(count, async (at) => {
      const hold = await held(money, holdOf(account, 100n, { expiresAt: clock.now() + dayMs }));
      await money.charge(captureOf(hold, BigInt(at), { usage: { input: 3_000_000_000, output: 5 } }));
      return hold.requestId;
    }),
  );

test("a month is archived when it has been over for the retention, and not before", async () => {
  const bank = await startArchive();
  const account = await openAccount(bank.money, 10_000n);
  const ids = await calls(bank, account, 7);
  await bank.grow({ days: 68 });
  expect(await bank.archive.run()).toBe(0);
  await bank.grow({ days: 2 });
  const [one, two] = await Promise.all([bank.archive.run(), bank.archive.run()]);
  expect(one + two).toBe(7);
  const lines = await archivedLines(bank.mongo, bank.objects);
  expect(lines.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  expect(await bank.money.archives.list({ limit: 10 })).toEqual([
    { id: "2026-01", parts: 2, entries: 7, nanoUsd: -21n, bytes: expect.any(Number), archivedAt: expect.any(Date) },
  ]);
  await expectExact(bank.money);
  expect((await bank.money.balances([account])).get(account)).toBe(10_000n - 21n);
  // The result is the same without an earlier run of the job.
  const year = { from: "2026-01-01", to: "2026-12-31", groupBy: [], limit: 2 };
  expect(await bank.money.usage(account, year)).toMatchObject([{ calls: 7, costNanoUsd: 21n }]);
});

test("without a retention nothing is archived, and one of less than 35 days is refused", async () => {
  const bank = await startArchive();
  await calls(bank, await openAccount(bank.money, 1_000n), 1);
  await bank.grow({ days: 400 });
  expect(await bank.money.createArchive({ objects: bank.objects, retentionDays: undefined }).run()).toBe(0);
  const environment = (LEDGER_RETENTION_DAYS: string) => ({ ...bank.stores, LEDGER_RETENTION_DAYS });
  expect(() => loadConfig(environment("34"))).toThrow("LEDGER_RETENTION_DAYS");
  expect(loadConfig(environment("35")).LEDGER_RETENTION_DAYS).toBe(35);
});

test("credits, payments and refunds keep their ids, so none counts twice after years", async () => {
  const bank = await startArchive();
  const { money } = bank;
  const account = await openAccount(money, 1_000n);
  const [id = ""] = await calls(bank, account, 3);
  await money.refund(account, id);
  const payment = { memo: "memo", messageHash: "hash", nanoUsd: 5_000n, transaction: "signature" };
  await money.creditPayment(payment);
  await bank.grow({ days: 1_000 });
  expect(await bank.archive.run()).toBe(3);

  const again = { amountNanoUsd: 1_000n, idempotencyKey: "opening" };
  expect(await money.credit(account, again)).toMatchObject({ created: false });
  expect(await money.creditPayment(payment)).toMatchObject({ created: false });
  await expect(money.creditPayment({ ...payment, memo: "other" })).rejects.toMatchObject({ status: 409 });
  await expect(money.refund(account, id)).rejects.toMatchObject({ status: 404 });
  await expectExact(money);
  expect((await money.balances([paymentAccount("memo")])).get(paymentAccount("memo"))).toBe(5_000n);
});

test("a call whose deadline is long past is not captured again", async () => {
  const bank = await startArchive();
  const account = await openAccount(bank.money, 1_000n);
  const hold = await held(bank.money, holdOf(account, 100n));
  await bank.money.charge(captureOf(hold, 10n));
  const until = bank.clock.now() + 30 * dayMs;
  await bank.grow();
  expect(await bank.archive.run()).toBe(1);
  await expect(bank.money.capture(captureOf(hold, 90n, { until }))).rejects.toThrow("too late");
  await expectExact(bank.money);
});

test("an entry whose hold is not settled yet stays; the sweeper settles it, however late", async () => {
  const bank = await startArchive();
  const { money, clock } = bank;
  const account = await openAccount(money, 1_000n);
  const hold = await held(money, holdOf(account, 100n, { expiresAt: clock.now() }));
  await money.capture(captureOf(hold, 40n));
  await calls(bank, account, 2);
  await bank.grow();
  expect(await bank.archive.run()).toBe(2);
  expect(await money.entry(account, hold.requestId)).toBeDefined();
  await expectExact(money);
  await money.sweep(async () => false);
  expect(await money.account(account)).toMatchObject({ availableNanoUsd: 959n, openHolds: 0 });
  expect(await bank.archive.run()).toBe(1);
  await expectExact(money);
});

test("the entries of a lease stay while it is open, and while late costs are looked for", async () => {
  const bank = await startArchive();
  const { money, clock, mongo } = bank;
  const account = await openAccount(money, 1_000n);
  const leases = leasesOf(money);
  const request = leaseRequestOf(account, 100n, { expiresAt: clock.now() + dayMs });
  await money.capture(leasedCapture(request, await leases.hold(request), 30n));
  leases.abandon();
  await bank.grow();
  expect(await bank.archive.run()).toBe(0);
  await money.sweep(
    async () => false,
    async () => false,
  );
  expect(await bank.archive.run()).toBe(0);
  expect(await money.settleLateCosts()).toBe(0);
  expect(await money.account(account)).toMatchObject({ availableNanoUsd: 970n, openHolds: 0 });
  // MongoDB does this after two days.
  await mongo.connection.collection("sweptLeases").deleteMany({});
  expect(await bank.archive.run()).toBe(1);
  await expectExact(money);
});

test("an accrual stays until a batch has claimed it", async () => {
  const bank = await startArchive();
  const { mongo, clock, stores: _, objects } = bank;
  const money = createMoney({ mongo, clock, log, buyback: { bps: 1_000, token: "mint", eligible: new Set() } });
  const account = await openAccount(money, 1_000n);
  const hold = await held(money, holdOf(account, 100n));
  await money.charge(captureOf(hold, 50n));
  await bank.grow();
  const archive = money.createArchive({ objects, retentionDays, sizes });
  expect(await archive.run()).toBe(0);
  const { ids } = await money.claimable("mint", 10);
  await money.claim(ids, "bb_1");
  expect(await archive.run()).toBe(1);
  expect(await money.accrued()).toEqual([]);
  await expectExact(money);
});

test("nothing is deleted when the file is not what was written", async () => {
  const bank = await startArchive();
  await calls(bank, await openAccount(bank.money, 1_000n), 4);
  await bank.grow();
  const objects = { ...bank.objects, get: async (part: string) => (await bank.objects.get(part)).fill(0, 20, 24) };
  const damaging = bank.money.createArchive({ objects, retentionDays, sizes });
  await expect(damaging.run()).rejects.toThrow("damaged");
  expect(await ledgerIds(bank.mongo)).toHaveLength(5);
  expect(await bank.money.archives.list({ limit: 10 })).toEqual([]);
});

test("a month is restored exactly as it was, changes no balance, and is removed again", async () => {
  const bank = await startArchive();
  const { money, mongo, archive, s3, stores } = bank;
  const [account, other] = [await openAccount(money, 1_000n), await openAccount(money, 1_000n)];
  const [id = ""] = await calls(bank, account, 6);
  await calls(bank, other, 2);
  const collection = (name: string) => mongo.connection.collection<{ _id: string; amount: driver.Long }>(name);
  const exact = (name: string) =>
    collection(name)
      .find({ account, kind: "usage" }, { ...exactTypes, sort: { _id: 1 } })
      .toArray();
  await bank.grow();
  const before = await exact("ledger");
  await archive.run();
  expect(await exact("ledger")).toEqual([]);

  await expect(money.archives.restore("2025-01")).rejects.toMatchObject({ status: 404 });
  await money.archives.restore("2026-01", account);
  await expect(money.archives.restore("2026-01")).rejects.toMatchObject({ status: 409 });
  await Promise.all([archive.restore(), archive.restore()]);
  expect((await money.archives.restoreStates(["2026-01"])).get("2026-01")).toMatchObject({
    state: "restored",
    parts: 2,
  });
  expect(await exact("restoredEntries")).toEqual(before);
  expect(await money.archives.restoredEntry(id)).toMatchObject({ id, account, request: { usage: { input: 3e9 } } });
  expect(await money.archives.restoredEntries(account, { limit: 50 })).toHaveLength(6);
  expect(await money.archives.restoredEntries(other, { limit: 50 })).toEqual([]);
  await expectExact(money);

  await money.archives.removeRestored("2026-01");
  await archive.restore();
  expect(await exact("restoredEntries")).toEqual([]);
  expect((await money.archives.restoreStates(["2026-01"])).size).toBe(0);

  // The file's metadata describes its content.
  const { Contents: [file] = [] } = await s3.send(
    new ListObjectsV2Command({ Bucket: stores.S3_BUCKET, Prefix: "ledger/2026-01/" }),
  );
  const { Metadata } = await s3.send(new GetObjectCommand({ Bucket: stores.S3_BUCKET, Key: file?.Key }));
  expect(Metadata).toMatchObject({ entries: expect.any(String), sha256: expect.any(String), version: "1" });
});

test.each([
  [{ Filter: { Prefix: "uploads/" }, Expiration: { Days: 2 } }, false],
  [{ Filter: { Prefix: "" }, Expiration: { Days: 30 } }, true],
  [{ Filter: { And: { Prefix: "led" } }, Expiration: { Days: 30 } }, true],
  [{ Expiration: { Date: new Date(0) } }, true],
  [{ Filter: { Prefix: "ledger/" }, NoncurrentVersionExpiration: { NoncurrentDays: 2 } }, false],
])("rule %# of a bucket is checked for whether it deletes archives", (rule, expires) => {
  expect(expiresArchives({ Status: "Enabled", ...rule })).toBe(expires);
  expect(expiresArchives({ Status: "Disabled", ...rule })).toBe(false);
});
