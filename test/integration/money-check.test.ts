import { expect, test } from "vitest";
import type { Mongo } from "../../shared/platform/mongo/connection.ts";
import { brokenWire, type Command } from "../support/money-proxy.ts";
import {
  captureOf,
  createMovableClock,
  held,
  holdOf,
  openAccount,
  startBank,
  startMoney,
  times,
} from "../support/money-setup.ts";

const stored = ({ connection }: Mongo, collection: "accounts" | "ledger" | "checkpoints") =>
  connection.collection<{ _id: string; account?: string; amount?: bigint }>(collection);
/** Entries that no checkpoint counts. */
const since = (mongo: Mongo) => stored(mongo, "ledger").countDocuments({ checkpointed: null } as object);

test("open holds, captured or not, are counted, and the check passes", async () => {
  const { uri, account } = await startBank();
  let nowMs = Date.now();
  const clock = { ...createMovableClock(), now: () => nowMs };
  const { money } = await startMoney(uri, clock);
  await openAccount(money, 0n);
  const holds = await Promise.all(times(3, () => held(money, holdOf(account, 100n))));
  const [captured, settled] = holds;
  if (!captured || !settled) throw new Error("no holds");
  await money.capture(captureOf(captured, 40n));
  await money.charge(captureOf(settled, 10n));
  nowMs += 90_000;
  await held(money, holdOf(account, 1n, { expiresAt: clock.now() }));
  nowMs += 30_000;
  expect(await money.check()).toEqual({
    ok: true,
    faults: 0,
    next: undefined,
    accounts: 2,
    differenceNanoUsd: 0n,
    openHolds: 3,
    overdueHolds: 1,
    oldestOpenHoldSeconds: 120,
    undecided: 2,
  });
});

test("the check passes without accounts", async () => {
  const { money, mongo } = await startBank();
  await mongo.connection.collection("accounts").deleteMany({});
  await mongo.connection.collection("ledger").deleteMany({});
  expect(await money.check()).toMatchObject({ ok: true, accounts: 0, oldestOpenHoldSeconds: 0 });
});

test.each([
  ["a balance too high", { $inc: { available: 3n } }, 3n],
  ["a balance too low", { $inc: { available: -3n } }, 3n],
  ["held money that no hold has", { $inc: { held: 1n, available: -1n } }, 0n],
  ["a count that is not that of the holds", { $inc: { openHolds: 1 } }, 0n],
])("%s is found, before and after a checkpoint", async (_, damage, differenceNanoUsd) => {
  const { money, mongo, account } = await startBank();
  await openAccount(money, 5n);
  await held(money, holdOf(account, 10n));
  await stored(mongo, "accounts").updateOne({ _id: account }, damage);
  const wrong = { ok: false, accounts: 2, differenceNanoUsd };
  expect(await money.check()).toMatchObject(wrong);
  expect(await money.checkpoint()).toBe(2);
  for (const full of [false, true]) expect(await money.check({ full })).toMatchObject(wrong);
});

test("differences of two accounts do not cancel out", async () => {
  const { money, mongo, account } = await startBank();
  const other = await openAccount(money, 1_000n);
  const accounts = mongo.connection.collection<{ _id: string }>("accounts");
  await accounts.updateOne({ _id: account }, { $inc: { available: 3n } });
  await accounts.updateOne({ _id: other }, { $inc: { available: -3n } });
  expect(await money.check()).toMatchObject({ ok: false, differenceNanoUsd: 6n });
});

test("a balance below zero is found even if the ledger agrees", async () => {
  const { money, mongo, account } = await startBank();
  await stored(mongo, "accounts").updateOne({ _id: account }, { $inc: { available: -1_001n } });
  await stored(mongo, "ledger").updateOne({ account }, { $inc: { amount: -1_001n } });
  expect(await money.check()).toMatchObject({ ok: false, differenceNanoUsd: 0n });
});

test.each(["a", "zzzz"])("entries of an account %s that does not exist are found", async (account) => {
  const { money, mongo } = await startBank();
  await mongo.connection.collection<{ _id: string }>("ledger").insertOne({ _id: "x", account, amount: 7n } as never);
  expect(await money.check()).toMatchObject({ ok: false, accounts: 1, differenceNanoUsd: 7n });
  await money.checkpoint();
  for (const full of [false, true])
    expect(await money.check({ full })).toMatchObject({ ok: false, accounts: 1, differenceNanoUsd: 7n });
});

test("an entry that was wrong when it was counted is found by every check, one changed later only by a full check", async () => {
  const { money, mongo, account } = await startBank();
  await money.charge(captureOf(await held(money, holdOf(account, 100n)), 30n));
  const spoil = (amount: bigint) =>
    stored(mongo, "ledger").updateOne({ account, amount: { $lt: 0n } }, { $inc: { amount } });
  await spoil(-4n);
  await money.checkpoint();
  for (const full of [false, true])
    expect(await money.check({ full })).toMatchObject({ ok: false, differenceNanoUsd: 4n });
  await spoil(4n);
  expect(await money.check({ full: true })).toMatchObject({ ok: false, differenceNanoUsd: 0n });
  await stored(mongo, "checkpoints").updateOne({ _id: account }, { $inc: { amount: 4n } });
  for (const full of [false, true]) expect(await money.check({ full })).toMatchObject({ ok: true });
  await stored(mongo, "ledger").deleteOne({ account, amount: { $lt: 0n } });
  expect(await money.check()).toMatchObject({ ok: true });
  expect(await money.check({ full: true })).toMatchObject({ ok: false, differenceNanoUsd: 30n });
});

test("an account whose entries add up to zero has no checkpoint", async () => {
  const { money, mongo, account } = await startBank({ balanceNanoUsd: 5n });
  await money.checkpoint();
  expect(await stored(mongo, "checkpoints").find().toArray()).toEqual([{ _id: account, amount: 5n }]);
  await money.credit(account, { amountNanoUsd: -5n, idempotencyKey: "back" });
  expect(await money.checkpoint()).toBe(1);
  expect(await stored(mongo, "checkpoints").countDocuments()).toBe(0);
  expect(await money.check({ full: true })).toMatchObject({ ok: true, accounts: 1 });
});

test("the check passes when an account was removed and no checkpoint counts its last entry yet", async () => {
  const { money } = await startBank();
  const payment = { memo: "memo", messageHash: "hash", nanoUsd: 5n, transaction: "signature" };
  const { account } = (await money.creditPayment(payment)).entry;
  await money.checkpoint();
  const opened = await money.account(account);
  expect(opened && (await money.removeSpentAccount(opened))).toBe(true);
  for (const full of [false, true]) expect(await money.check({ full })).toMatchObject({ ok: true, faults: 0 });
});

test("a crash at any command of a checkpoint leaves every entry counted once", async () => {
  const { money, mongo, uri, account } = await startBank({ balanceNanoUsd: 1_000_000n });
  await Promise.all(times(40, async () => money.charge(captureOf(await held(money, holdOf(account, 20n)), 3n))));
  const inTransaction = ["find", "find", "update", "delete", "update", "commitTransaction"];
  const steps = [...inTransaction, "update", "update"];
  const marks = ({ update }: Command) => update === "ledger" || update === "checkpointBatches";
  const cases = steps.map((_, at) =>
    ["lose the request" as const, "lose the answer" as const].map((fate) => [at, fate] as const),
  );
  for (const [dieAt, fate] of cases.flat()) {
    await money.charge(captureOf(await held(money, holdOf(account, 20n)), 3n));
    const commands: Command[] = [];
    const dead = Promise.withResolvers<void>();
    const wire = await brokenWire(uri, (command) => {
      if (command["autocommit"] !== false && !marks(command)) return "pass";
      commands.push(command);
      if (commands.length <= dieAt) return "pass";
      dead.resolve();
      return commands.length === dieAt + 1 ? fate : "lose the request";
    });
    const { money: far, mongo: theirs } = await startMoney(wire);
    const dying = far.checkpoint().catch(() => {});
    await dead.promise;
    await theirs.close();
    await dying;
    const names = commands.map((command) => Object.keys(command)[0]);
    expect(names.slice(0, dieAt + 1)).toEqual(steps.slice(0, dieAt + 1));
    for (const full of [false, true]) expect(await money.check({ full })).toMatchObject({ ok: true });
    // The server ends the transaction of a dead process within a minute.
    await mongo.connection.db?.command({ killSessions: [commands[0]?.["lsid"]] });
    if (fate === "lose the answer" || dieAt >= inTransaction.length) await money.checkpoint();
  }
  await money.checkpoint();
  expect(await since(mongo)).toBe(0);
  expect(await money.check({ full: true })).toMatchObject({ ok: true, differenceNanoUsd: 0n, openHolds: 0 });
});

test("accounts are compared in pages, each in its own snapshot, and none is missed between pages", async () => {
  const { money, mongo, uri } = await startBank();
  const account = (at: number) => `acct_many${String(at).padStart(5, "0")}`;
  const opened = {
    name: "many",
    tier: "standard",
    frozen: false,
    held: 0n,
    openHolds: 0,
    holds: {},
    createdAt: new Date(),
  };
  const accounts = times(2_500, (at) => ({ ...opened, _id: account(at), available: 3n }));
  const entries = accounts.map(({ _id }) => ({ _id: `credit:${_id}`, account: _id, kind: "credit", amount: 3n }));
  await stored(mongo, "accounts").insertMany(accounts);
  await stored(mongo, "ledger").insertMany(entries);
  const snapshots = new Set<string>();
  const wire = await brokenWire(uri, ({ readConcern }) => {
    const { atClusterTime } = (readConcern ?? {}) as { atClusterTime?: bigint };
    if (atClusterTime !== undefined) snapshots.add(`${atClusterTime}`);
    return "pass";
  });
  const { money: far } = await startMoney(wire);
  for (let counted = 0; counted < 2; counted++) {
    for (const full of [false, true])
      expect(await far.check({ full })).toMatchObject({ ok: true, accounts: 2_501, differenceNanoUsd: 0n });
    await money.checkpoint();
  }
  expect(snapshots.size).toBeGreaterThanOrEqual(2);
  const ends = [999, 1_000, 1_998, 1_999, 2_499].map(account);
  await stored(mongo, "accounts").updateMany({ _id: { $in: ends } }, { $inc: { available: 1n } });
  for (const missing of [`${account(999)}a`, "acct_many", "zzz"])
    await stored(mongo, "ledger").insertOne({ _id: `credit:${missing}`, account: missing, amount: 10n });
  for (const full of [false, true])
    expect(await far.check({ full })).toMatchObject({ ok: false, accounts: 2_501, differenceNanoUsd: 35n });
});
