import { expect, test } from "vitest";
import {
  available,
  hashOf,
  micro,
  priceNanoUsd,
  quoteDocument,
  receiptOf,
  settlePayment,
  startPayments,
  usd,
} from "../support/payments-setup.ts";

test("a quote has the form of the specification", async () => {
  const { quoted, chain } = await startPayments();
  expect(await quoted({ priceNanoUsd: 40_000_001n })).toEqual({
    x402Version: 2,
    error: "PAYMENT-SIGNATURE header is required",
    resource: { url: "http://localhost/v1/images/generations", description: "An image", mimeType: "application/json" },
    accepts: [
      {
        scheme: "exact",
        network: chain.network,
        asset: chain.mint,
        amount: "40001",
        payTo: chain.payTo,
        maxTimeoutSeconds: 60,
        extra: {
          feePayer: chain.feePayer.address,
          memo: expect.stringMatching(/^[0-9A-Za-z]{24}$/),
          paymentFlow: "upfront",
        },
      },
    ],
  });
});

test("a payment by the official client opens an account with the amount received on chain", async () => {
  const { pay, settle, payer, chain, received, money, ...all } = await startPayments();
  const { header, memo } = await pay({ buybackToken: "4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU" });
  const settlement = await settle(header);
  expect(settlement).toMatchObject({ kind: "settled", account: `x402:${memo}` });
  expect(receiptOf(settlement)).toMatchObject({ success: true, payer: payer.address, network: chain.network });
  expect(await received()).toBe(micro(priceNanoUsd));
  expect(await chain.balance(payer.address)).toBe(micro(usd("5.00") - priceNanoUsd));
  expect(await money.account(`x402:${memo}`)).toMatchObject({
    availableNanoUsd: priceNanoUsd,
    heldNanoUsd: 0n,
    buybackToken: "4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU",
  });
  const { key } = settlement as { key: string };
  expect(await money.ledger(`x402:${memo}`, { limit: 10 })).toMatchObject([
    { id: key, kind: "credit", amountNanoUsd: priceNanoUsd, transaction: receiptOf(settlement).transaction },
  ]);
  expect(await quoteDocument(all, memo)).toMatchObject({ state: "settled", messageHash: key, payer: payer.address });
  expect(await money.check()).toMatchObject({ ok: true, accounts: 1 });
});

test("a repeated payment with the same request returns the same account; with another request it is refused", async () => {
  const { pay, settle, received, ...all } = await startPayments();
  const { header, memo } = await pay();
  const first = await settle(header);
  expect(await settle(header)).toEqual(first);
  expect(await settle(header, { requestHash: hashOf({ prompt: "another" }) })).toMatchObject({
    kind: "refused",
    reason: "quote_for_another_request",
    body: { error: "quote_for_another_request", accepts: [{ scheme: "exact" }] },
  });
  expect(await received()).toBe(micro(priceNanoUsd));
  expect(await available(all, memo)).toBe(priceNanoUsd);
});

test("twenty concurrent uses of one payment in two processes settle it once", async () => {
  const first = await startPayments();
  const { pay, another, received, chain, money } = first;
  const other = await another();
  const { header, memo } = await pay();
  const settlements = await Promise.all(
    Array.from({ length: 20 }, (_, at) => settlePayment(at % 2 ? first : other, header)),
  );
  expect(new Set(settlements.map((each) => JSON.stringify(each))).size).toBe(1);
  expect(settlements[0]).toMatchObject({ kind: "settled", account: `x402:${memo}` });
  expect(await received()).toBe(micro(priceNanoUsd));
  expect(chain.calls["sendTransaction"]).toBe(1);
  expect(await available({ money }, memo)).toBe(priceNanoUsd);
  expect(await money.check()).toMatchObject({ ok: true });
});
