import { address } from "@solana/kit";
import { expect, test } from "vitest";
import { dayMs } from "../../shared/platform/clock.ts";
import { times } from "../support/money-setup.ts";
import { usd } from "../support/payments-setup.ts";
import { oddPayment } from "../support/payments-transactions.ts";
import { availableOf, startTopups } from "../support/topups-setup.ts";

const idle = { credited: 0, failed: 0 };
const one = { credited: 1, failed: 0 };

test("a payment with the reference is credited once, and the top-up shows it", async () => {
  const all = await startTopups();
  const account = await all.account();
  const topup = await all.topups.open(account, usd("25"));
  const { searchParams, protocol, pathname } = new URL(topup.url);
  expect({ protocol, pathname, ...Object.fromEntries(searchParams) }).toEqual({
    protocol: "solana:",
    pathname: all.chain.payTo,
    amount: "25.00",
    "spl-token": all.chain.mint,
    reference: topup.reference,
    label: "Inference service",
    message: "Top-up of 25.00 USD",
  });
  expect(topup.url).not.toMatch(/[+\s]/);
  expect(await all.run()).toEqual(idle);
  expect(await all.topups.find(account, topup.id)).toMatchObject({ status: "pending", receivedNanoUsd: 0n });

  const signature = await all.pay(topup);
  expect(await all.run()).toEqual(one);
  const paid = { status: "completed", receivedNanoUsd: usd("25"), transaction: signature };
  expect(await all.topups.find(account, topup.id)).toMatchObject(paid);
  expect(await all.topups.find(await all.account(), topup.id)).toBeUndefined();
  expect(await availableOf(all.money, account)).toBe(usd("25"));
  const [entry] = await all.money.ledger(account, { limit: 10 });
  expect(entry).toMatchObject({ id: `topup:${signature}`, kind: "credit", transaction: signature });
  expect(await all.run()).toEqual(idle);
  expect(await availableOf(all.money, account)).toBe(usd("25"));
  expect(await all.money.check()).toMatchObject({ ok: true });
});

test("a payment that is not finalized is not credited", async () => {
  const all = await startTopups();
  const account = await all.account();
  const topup = await all.topups.open(account, usd("5"));
  all.chain.holdAt("confirmed");
  await all.pay(topup);
  expect(await all.run()).toEqual(idle);
  all.chain.holdAt("finalized");
  expect(await all.run()).toEqual(one);
});

test("a payment that arrives twice, late or in another amount is credited as received", async () => {
  const all = await startTopups();
  const account = await all.account();
  const topup = await all.topups.open(account, usd("5"));
  const first = await all.pay(topup, { amount: "1.234567" });
  expect(await all.run()).toEqual(one);
  all.clock.later(6 * dayMs);
  expect(await all.topups.open(account, usd("1"))).toMatchObject({ status: "pending" });
  await all.pay(topup, { amount: "7" });
  expect(await all.run()).toEqual(one);
  const shown = { status: "completed", receivedNanoUsd: usd("8.234567"), transaction: first };
  expect(await all.topups.find(account, topup.id)).toMatchObject(shown);
  expect(await availableOf(all.money, account)).toBe(usd("8.234567"));

  const unpaid = await all.topups.open(account, usd("5"));
  all.clock.later(3_600_000);
  expect(await all.topups.find(account, unpaid.id)).toMatchObject({ status: "expired" });
  all.clock.later(8 * dayMs);
  expect(await all.run()).toEqual(idle);
  const listed = all.chain.calls["getSignaturesForAddress"];
  all.clock.later(8 * dayMs);
  await all.run();
  expect(all.chain.calls["getSignaturesForAddress"]).toBe(listed);
});

test("a transaction that names the references of two accounts is credited to one", async () => {
  const all = await startTopups();
  const [mine, other] = [await all.account(), await all.account()];
  const [first, second] = [await all.topups.open(mine, usd("5")), await all.topups.open(other, usd("5"))];
  const references = [first.reference, second.reference].map((each) => address(each));
  await all.pay(first, { references });
  const another = await all.another();
  await Promise.all([all.run(), all.run(another)]);
  await all.run();
  const sums = [await availableOf(all.money, mine), await availableOf(all.money, other)];
  expect(new Set(sums)).toEqual(new Set([0n, usd("5")]));
  expect(await all.money.check()).toMatchObject({ ok: true, accounts: 2 });
});

test("a reference in a payment to another wallet, of another token, or in one that failed credits nothing", async () => {
  const all = await startTopups();
  const { chain } = all;
  const account = await all.account();
  const topup = await all.topups.open(account, usd("5"));
  const outsider = await chain.wallet("0");
  await all.pay(topup, { recipient: outsider.address });
  const worthless = await chain.createMint();
  await chain.setBalance(all.wallet.address, 10_000_000n, worthless);
  await chain.setBalance(chain.payTo, 0n, worthless);
  await all.pay(topup, { splToken: worthless });
  expect(await all.run()).toEqual(idle);
  // The node reports another transaction as the payment.
  const paid = await all.pay(await all.topups.open(await all.account(), usd("9")));
  chain.faults.next("getSignaturesForAddress", {
    answer: [{ signature: paid, slot: 1, err: null, memo: null, blockTime: 1, confirmationStatus: "finalized" }],
  });
  await all.run();
  expect(await availableOf(all.money, account)).toBe(0n);
});

test("a payment of x402 that also names a reference counts once, as the payment of its call", async () => {
  const all = await startTopups();
  const account = await all.account();
  const topup = await all.topups.open(account, usd("5"));
  const required = await all.quoted();
  const reference = address(topup.reference);
  const settled = await all.settle(await oddPayment(all.chain, all.payer, required, { reference }));
  expect(settled).toMatchObject({ kind: "settled" });
  expect(await all.run()).toEqual(idle);
  const memo = (required.accepts[0]?.extra["memo"] ?? "") as string;
  expect(await availableOf(all.money, account)).toBe(0n);
  expect(await availableOf(all.money, `x402:${memo}`)).toBe(usd("0.04"));
  // The quote may still be unclaimed: the owner of the transaction can pay the call with it.
  const { accepts } = await all.quoted();
  await all.pay(topup, { memo: accepts[0]?.extra["memo"] as string });
  expect(await all.run()).toEqual(idle);
  await all.pay(topup, { memo: "Thanks for all the fish!!" });
  expect(await all.run()).toEqual(one);
});

test("hundreds of small payments with one reference: one look reads a hundred at most, and all are credited", async () => {
  const all = await startTopups();
  const account = await all.account();
  const topup = await all.topups.open(account, usd("5"));
  const count = 130;
  for (let n = 1; n <= count; n++) await all.pay(topup, { amount: `0.${String(n).padStart(6, "0")}` });
  all.clock.later(60_000);
  const signal = new AbortController().signal;
  const other = await all.topups.open(await all.account(), usd("5"));
  await all.pay(other);
  expect(await all.topups.creditArrived(signal)).toEqual({ credited: count + 1, failed: 0 });
  expect(all.chain.calls["getTransaction"]).toBe(count + 1);
  expect(await availableOf(all.money, account)).toBe(BigInt((count * (count + 1)) / 2) * 1_000n);
  await all.pay(topup);
  expect(await all.run()).toEqual(one);
  expect(all.chain.calls["getTransaction"]).toBe(count + 2);
});

test("a node that is down, behind, or has no transaction that it listed only delays a payment", async () => {
  const all = await startTopups();
  const { faults } = all.chain;
  const account = await all.account();
  const topup = await all.topups.open(account, usd("5"));
  await all.pay(topup, { amount: "1" });
  await all.pay(topup, { amount: "2" });
  faults.next("getSignaturesForAddress", { status: 503 });
  expect(await all.run()).toEqual({ credited: 0, failed: 1 });
  faults.next("getSignaturesForAddress", { code: -32016, message: "Minimum context slot has not been reached" });
  expect(await all.run()).toEqual({ credited: 0, failed: 1 });
  faults.next("getTransaction", { answer: null });
  expect(await all.run()).toEqual({ credited: 1, failed: 1 });
  expect(await availableOf(all.money, account)).toBe(usd("1"));
  expect(await all.run()).toEqual(one);
  expect(await availableOf(all.money, account)).toBe(usd("3"));
});

test("a worker that died after its claim, or after the credit, is made good by the next one", async () => {
  const all = await startTopups();
  const payments = all.mongo.connection.collection<{ _id: string; topup: string; nanoUsd: bigint }>("topupPayments");
  const account = await all.account();
  const topup = await all.topups.open(account, usd("5"));
  const claimed = await all.pay(topup, { amount: "2" });
  await payments.insertOne({ _id: claimed, topup: topup.id, nanoUsd: usd("2") });
  expect(await all.run()).toEqual(one);
  const credited = await all.pay(topup, { amount: "3" });
  await payments.insertOne({ _id: credited, topup: topup.id, nanoUsd: usd("3") });
  await all.money.creditReceipt(account, { nanoUsd: usd("3"), transaction: credited });
  expect(await all.run()).toEqual(idle);
  expect(await all.topups.find(account, topup.id)).toMatchObject({ receivedNanoUsd: usd("5"), status: "completed" });
  expect(await availableOf(all.money, account)).toBe(usd("5"));
});

test("four workers at once credit each payment once", async () => {
  const all = await startTopups();
  const others = [await all.another(), await all.another(), await all.another()];
  const accounts = await Promise.all(Array.from({ length: 6 }, all.account));
  for (const account of accounts) await all.pay(await all.topups.open(account, usd("2")));
  const counts = await Promise.all([all, ...others].map((each) => all.run(each)));
  expect(counts.reduce((sum, { credited }) => sum + credited, 0)).toBe(6);
  for (const account of accounts) expect(await availableOf(all.money, account)).toBe(usd("2"));
  expect(await all.money.check()).toMatchObject({ ok: true });
});

test("an account has at most twenty unpaid top-ups a day, and they are listed newest first", async () => {
  const all = await startTopups();
  const account = await all.account();
  const opened: string[] = [];
  // Concurrent requests first: they stay within the limit, and the responses agree with the list.
  const atOnce = await Promise.allSettled(times(60, () => all.topups.open(account, usd("1"))));
  const given = atOnce.flatMap((each) => (each.status === "fulfilled" ? [each.value.id] : []));
  expect(given.length).toBeLessThanOrEqual(20);
  const stored = (await all.topups.list(account, { limit: 100 })).map(({ id }) => id);
  expect(stored.toSorted()).toEqual(given.toSorted());
  opened.push(...stored);
  while (opened.length < 20) {
    all.clock.later(1_000);
    opened.unshift((await all.topups.open(account, usd("1"))).id);
  }
  await expect(all.topups.open(account, usd("1"))).rejects.toMatchObject({ code: "rate_limit_exceeded" });
  const page = await all.topups.list(account, { limit: 15 });
  const rest = await all.topups.list(account, { limit: 15, after: page.at(-1)?.id });
  expect([...page, ...rest].map(({ id }) => id)).toEqual(opened);
  await all.pay(page[0] as (typeof page)[number]);
  await all.run();
  await expect(all.topups.open(account, usd("1"))).resolves.toMatchObject({ status: "pending" });
  all.clock.later(dayMs);
  await expect(all.topups.open(account, usd("1"))).resolves.toMatchObject({ status: "pending" });
});
