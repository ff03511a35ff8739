import { expect, test } from "vitest";
import { decisionOf, held, holdOf, openAccount, startBank, times } from "./money-setup.ts";

test("the check counts what is open, decided or not, and it is ok", async () => {
  const { money, account, clock } = await startBank();
  await openAccount(money, 0n);
  const holds = await Promise.all(times(3, () => held(money, holdOf(account, 100n))));
  const [decided, applied] = holds;
  if (!decided || !applied) throw new Error("no holds");
  await money.decide(decisionOf(decided, 40n));
  await money.settle(decisionOf(applied, 10n));
  clock.later(90_000);
  await held(money, holdOf(account, 1n, { expiresAt: clock.now() }));
  clock.later(30_000);
  expect(await money.check()).toEqual({
    ok: true,
    accounts: 2,
    differenceNanoUsd: 0n,
    openHolds: 3,
    overdueHolds: 1,
    oldestOpenHoldSeconds: expect.toSatisfy((seconds: number) => seconds >= 120 && seconds < 130),
    undecided: 2,
  });
});

test("without accounts all is right", async () => {
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
])("%s is found", async (_, damage, differenceNanoUsd) => {
  const { money, mongo, account } = await startBank();
  await openAccount(money, 5n);
  await held(money, holdOf(account, 10n));
  await mongo.connection.collection<{ _id: string }>("accounts").updateOne({ _id: account }, damage);
  expect(await money.check()).toMatchObject({ ok: false, accounts: 2, differenceNanoUsd });
});

test("differences of two accounts do not cancel out", async () => {
  const { money, mongo, account } = await startBank();
  const other = await openAccount(money, 1_000n);
  const accounts = mongo.connection.collection<{ _id: string }>("accounts");
  await accounts.updateOne({ _id: account }, { $inc: { available: 3n } });
  await accounts.updateOne({ _id: other }, { $inc: { available: -3n } });
  expect(await money.check()).toMatchObject({ ok: false, differenceNanoUsd: 6n });
});

test("a balance below zero is found, though the ledger agrees", async () => {
  const { money, mongo, account } = await startBank();
  await mongo.connection
    .collection<{ _id: string }>("accounts")
    .updateOne({ _id: account }, { $inc: { available: -1_001n } });
  await mongo.connection.collection<{ _id: string }>("ledger").updateOne({ account }, { $inc: { amount: -1_001n } });
  expect(await money.check()).toMatchObject({ ok: false, differenceNanoUsd: 0n });
});

test.each(["a", "zzzz"])("entries of an account %s that does not exist are found", async (account) => {
  const { money, mongo } = await startBank();
  await mongo.connection.collection<{ _id: string }>("ledger").insertOne({ _id: "x", account, amount: 7n } as never);
  expect(await money.check()).toMatchObject({ ok: false, accounts: 1, differenceNanoUsd: 7n });
});

test("the check is right while money moves", async () => {
  const { money, account, another } = await startBank({ balanceNanoUsd: 100_000n });
  const writer = await another();
  const state = { busy: true };
  const writing = Promise.all(
    times(20, async () => {
      while (state.busy) await writer.settle(decisionOf(await held(writer, holdOf(account, 20n)), 3n));
    }),
  );
  for (let round = 0; round < 20; round++) {
    expect(await money.check()).toMatchObject({ ok: true, differenceNanoUsd: 0n, accounts: 1 });
    await money.credit(account, { amountNanoUsd: 10n, idempotencyKey: `${round}` });
  }
  state.busy = false;
  await writing;
  expect(await money.check()).toMatchObject({ ok: true, openHolds: 0 });
});
