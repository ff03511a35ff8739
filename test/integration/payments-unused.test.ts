import { expect, test } from "vitest";
import { captureOf, held, holdOf, profiled, times } from "../support/money-setup.ts";
import {
  available,
  micro,
  priceNanoUsd,
  quoteDocument,
  receiptOf,
  type Started,
  startPayments,
  usd,
} from "../support/payments-setup.ts";

const hourMs = 3_600_000;
const signature = "5".repeat(88);

async function paid(all: Started) {
  const { header, memo } = await all.pay();
  const settlement = await all.settle(header);
  if (settlement.kind !== "settled") throw new Error(settlement.reason);
  const { money } = all;
  /** Runs a call at this cost on the payment. */
  const call = async (costNanoUsd: bigint, status: "succeeded" | "failed" = "succeeded") => {
    const hold = await held(money, holdOf(settlement.account, priceNanoUsd));
    await money.charge(captureOf(hold, costNanoUsd, { status }));
  };
  return { header, memo, account: settlement.account, signature: receiptOf(settlement).transaction, call };
}

test("the unused part of payments is listed with its payer", async () => {
  const all = await startPayments();
  const { payments, payer, received, money } = all;
  const [full, half, none] = [await paid(all), await paid(all), await paid(all)];
  await full.call(priceNanoUsd);
  await half.call(usd("0.01"));
  await none.call(0n, "failed");
  expect(await payments.unused.total()).toEqual({ nanoUsd: usd("0.07"), payments: 2 });
  const listed = await payments.unused.list({ limit: 10 });
  expect(listed).toHaveLength(2);
  expect(listed.find(({ memo }) => memo === half.memo)).toEqual({
    memo: half.memo,
    account: half.account,
    payer: payer.address,
    transaction: half.signature,
    paidNanoUsd: priceNanoUsd,
    unusedNanoUsd: usd("0.03"),
    paidAt: expect.any(Date),
    usableUntil: expect.any(Date),
  });
  const [first, second] = listed.map(({ memo }) => memo);
  expect(await payments.unused.list({ limit: 1 })).toMatchObject([{ memo: first }]);
  expect(await payments.unused.list({ limit: 1, after: first })).toMatchObject([{ memo: second }]);
  expect(await payments.unused.total({ expiredOnly: true })).toEqual({ nanoUsd: 0n, payments: 0 });
  all.clock.later(27 * hourMs);
  expect(await payments.unused.total({ expiredOnly: true })).toEqual({ nanoUsd: usd("0.07"), payments: 2 });
  expect(await received()).toBe(micro(3n * priceNanoUsd));
  expect(await money.accounts({ limit: 10 })).toEqual([]);
});

test("a refund counts once for each transaction, also when it is recorded concurrently", async () => {
  const all = await startPayments();
  const { money, payments } = all;
  const other = await all.another();
  const { memo, account, header, call } = await paid(all);
  await call(0n, "failed");
  const refund = { nanoUsd: priceNanoUsd, transaction: signature, reason: "the model was down" };
  const moves = await Promise.all(times(10, (at) => (at % 2 ? payments : other.payments).unused.refund(memo, refund)));
  const entries = moves.map(({ entry }) => entry);
  expect(moves.filter(({ created }) => created)).toHaveLength(1);
  expect(new Set(entries.map(({ id }) => id))).toEqual(new Set([`payout:${account}:${signature}`]));
  expect(entries[0]).toMatchObject({
    kind: "payout",
    amountNanoUsd: -priceNanoUsd,
    transaction: signature,
    reason: "the model was down",
  });
  expect(await available(all, memo)).toBe(0n);
  expect(await payments.unused.total()).toEqual({ nanoUsd: 0n, payments: 0 });
  expect(await all.settle(header)).toMatchObject({ kind: "refused", reason: "payment_paid_back" });
  expect(await money.check()).toMatchObject({ ok: true, differenceNanoUsd: 0n });
});

test.each([
  ["more than is owed", { nanoUsd: usd("0.040001"), transaction: signature }, 409],
  ["nothing", { nanoUsd: 0n, transaction: signature }, 400],
  ["less than one unit of USDC", { nanoUsd: 1_500n, transaction: signature }, 400],
  ["not signed", { nanoUsd: 1_000n, transaction: "sent it" }, 400],
])("a refund that is %s is refused", async (_, refund, status) => {
  const all = await startPayments();
  const { memo } = await paid(all);
  await expect(all.payments.unused.refund(memo, refund)).rejects.toMatchObject({ status });
  expect(await available(all, memo)).toBe(priceNanoUsd);
  await expect(all.payments.unused.refund("nobody", { ...refund, nanoUsd: 1_000n })).rejects.toMatchObject({
    status: status === 400 && refund.transaction !== signature ? 400 : 404,
  });
});

test("the same transaction with another amount is a conflict", async () => {
  const all = await startPayments();
  const { memo } = await paid(all);
  await all.payments.unused.refund(memo, { nanoUsd: 1_000n, transaction: signature });
  const another = { nanoUsd: 2_000n, transaction: signature };
  await expect(all.payments.unused.refund(memo, another)).rejects.toMatchObject({ status: 409 });
  expect(await available(all, memo)).toBe(priceNanoUsd - 1_000n);
});

test("spent accounts are removed a day after the payment, accounts with a balance stay, and the check passes", async () => {
  const all = await startPayments();
  const { payments, money, clock } = all;
  const [empty, dust, owing, busy] = [await paid(all), await paid(all), await paid(all), await paid(all)];
  await empty.call(priceNanoUsd);
  await dust.call(priceNanoUsd - 999n);
  await owing.call(priceNanoUsd - 1_000n);
  await held(money, holdOf(busy.account, priceNanoUsd));
  clock.later(25 * hourMs);
  expect(await payments.unused.removeSpent()).toBe(0);
  clock.later(2 * hourMs);
  expect(await payments.unused.removeSpent()).toBe(2);
  for (const { account, memo } of [empty, dust]) {
    expect(await money.account(account)).toBeUndefined();
    expect(await quoteDocument(all, memo)).toBeNull();
  }
  for (const { account } of [owing, busy]) expect(await money.account(account)).toBeDefined();
  expect(await money.ledger(dust.account, { limit: 1 })).toMatchObject([
    { id: `writeoff:${dust.account}`, kind: "adjustment", amountNanoUsd: -999n },
  ]);
  expect(await money.check()).toMatchObject({ ok: true, accounts: 2, differenceNanoUsd: 0n });
  expect(await payments.unused.removeSpent()).toBe(0);
  expect(await all.settle(empty.header)).toMatchObject({ kind: "refused", reason: "quote_not_found" });
});

test("sums and lists read the payments that they are about, whatever the number of others", async () => {
  const all = await startPayments();
  const { payments, mongo, clock } = all;
  const [owing, empty] = [await paid(all), await paid(all)];
  await empty.call(priceNanoUsd);
  const accounts = mongo.connection.collection<{ _id: string }>("accounts");
  const other = async (available: bigint, held: bigint) => {
    const stored = await accounts.findOne({ _id: owing.account });
    const copies = times(50, (at) => ({
      ...stored,
      _id: `x402:${held}_${at}`,
      available,
      held,
      openHolds: Number(held),
    }));
    await accounts.insertMany(copies as never);
  };
  await other(0n, 1n);
  clock.later(27 * hourMs);
  const read = await profiled(mongo, { "command.comment": "scatter: unused payments" }, async () => {
    await payments.unused.total();
    await payments.unused.list({ limit: 10 });
    expect(await payments.unused.removeSpent()).toBe(1);
  });
  expect(read.map(({ keysExamined, docsExamined }) => [Number(keysExamined), Number(docsExamined)])).toEqual([
    [1, 0],
    [1, 1],
    [1, 1],
  ]);
});
