import { expect, test } from "vitest";
import { brokenWire } from "../support/money-proxy.ts";
import {
  available,
  expectPaid,
  micro,
  openPayments,
  payFrom,
  priceNanoUsd,
  quoteRequest,
  type Started,
  settingsOf,
  settlePayment,
  startPayments,
  stateOf,
} from "../support/payments-setup.ts";
import { eventually } from "../support/service.ts";
import { failedSimulation } from "../support/solana.ts";

/** The response of an RPC node that does not have a transaction, at a slot. */
const knowsNothing = (slot: number) => ({ answer: { context: { apiVersion: "3.0.0", slot }, value: [null] } });

/** A payment on chain whose process died and whose blockhash has expired, while the RPC node did not have it. */
async function forgotten(all: Started) {
  const { chain, clock } = all;
  const { header, memo } = await all.pay();
  // It must not go on when its call has timed out.
  const wire = await brokenWire(all.uri, () =>
    chain.calls["getSignatureStatuses"] === undefined ? "pass" : "lose the request",
  );
  const victim = await openPayments(wire, clock, settingsOf(chain));
  chain.faults.next("getSignatureStatuses", { after: new Promise<never>(() => {}) });
  settlePayment(victim, header).catch(() => undefined);
  await eventually(async () => chain.calls["getSignatureStatuses"] === 1);
  clock.later(60_000);
  chain.faults.next("getSignatureStatuses", knowsNothing(1));
  expect(await all.x402.reconcile()).toEqual({ settled: 0, reopened: 0, unknown: 1 });
  chain.advance(400);
  clock.later(2_000);
  expect(await all.received()).toBe(micro(priceNanoUsd));
  expect(await stateOf(all, memo)).toBe("unknown");
  return { header, memo };
}

test("an RPC node that is behind cannot show that a payment is absent; it is looked up again after the others", async () => {
  const all = await startPayments();
  const { memo } = await forgotten(all);
  all.chain.faults.next("getSignatureStatuses", knowsNothing(1));
  expect(await all.x402.reconcile()).toEqual({ settled: 0, reopened: 0, unknown: 1 });
  expect(await all.x402.reconcile()).toEqual({ settled: 0, reopened: 0, unknown: 0 });
  all.clock.later(2_000);
  expect(await all.x402.reconcile()).toEqual({ settled: 1, reopened: 0, unknown: 0 });
  expect(all.chain.calls["sendTransaction"]).toBe(1);
  await expectPaid(all, memo);
});

test("a payment that a node did not know is settled when it is repeated, and not sent again", async () => {
  const all = await startPayments();
  const { header, memo } = await forgotten(all);
  all.chain.faults.next("getSignatureStatuses", knowsNothing(1e9));
  expect(await all.x402.reconcile()).toEqual({ settled: 0, reopened: 1, unknown: 0 });
  expect(await all.settle(header)).toMatchObject({ kind: "settled", account: `x402:${memo}` });
  expect(all.chain.calls["sendTransaction"]).toBe(1);
  await expectPaid(all, memo);
});

test("while the fee payer has no SOL the process starts but nothing is quoted", async () => {
  const all = await startPayments();
  const { secret } = await all.chain.wallet();
  const instance = await openPayments(all.uri, all.clock, { ...settingsOf(all.chain), X402_FEE_PAYER_KEY: secret });
  await instance.x402.start();
  await expect(quoteRequest(instance)).rejects.toMatchObject({ status: 503, code: "no_capacity" });
  await all.chain.wallet(undefined, { secret, sol: 1n });
  const { body } = await quoteRequest(instance);
  const { header } = await payFrom(all.chain, all.payer, body);
  expect(await settlePayment(instance, header)).toMatchObject({ kind: "settled" });
});

test.each(["AccountNotFound", "InsufficientFundsForFee", { InsufficientFundsForRent: { account_index: 0 } }])(
  "a fee that cannot be paid (%j) is not the payer's fault: 503, and the quote stays open",
  async (reason) => {
    const all = await startPayments();
    const { header, memo } = await all.pay();
    all.chain.faults.next("simulateTransaction", failedSimulation(reason));
    await expect(all.settle(header)).rejects.toMatchObject({ status: 503, code: "no_capacity" });
    expect(await stateOf(all, memo)).toBe("open");
    expect(await all.settle(header)).toMatchObject({ kind: "settled" });
  },
);

test("a payment that the RPC answers with 429 is decided from the chain", async () => {
  const all = await startPayments();
  const { header, memo } = await all.pay();
  all.chain.faults.next("sendTransaction", { status: 429 });
  all.chain.faults.next("getSignatureStatuses", { status: 429 });
  all.settle(header).catch(() => undefined);
  await eventually(async () => (await stateOf(all, memo)) === "unknown");
  expect(await available(all, memo)).toBeUndefined();
});
