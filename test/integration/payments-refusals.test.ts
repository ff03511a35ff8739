import type { PaymentRequired, PaymentRequirements } from "@x402/core/types";
import { expect, test } from "vitest";
import {
  available,
  hashOf,
  headerOf,
  micro,
  openPayments,
  payFrom,
  payloadFrom,
  paySomethingElse,
  priceNanoUsd,
  quoteDocument,
  receiptOf,
  request,
  settingsOf,
  settlePayment,
  startPayments,
} from "../support/payments-setup.ts";
import { type BadPayment, badPayments, oddPayment } from "../support/payments-transactions.ts";

const requestHash = hashOf(request);

type Started = Awaited<ReturnType<typeof startPayments>>;

/** Nothing moved, and the same quote can still be paid correctly. */
async function expectOpen({ received, settle, chain, payer, money, ...all }: Started, required: PaymentRequired) {
  const { memo, header } = await payFrom(chain, payer, required);
  expect(await received()).toBe(0n);
  expect(await quoteDocument(all, memo)).toMatchObject({ state: "open" });
  expect(await available({ money }, memo)).toBeUndefined();
  expect(await settle(header)).toMatchObject({ kind: "settled" });
  expect(await received()).toBe(micro(priceNanoUsd));
  expect(await money.check()).toMatchObject({ ok: true, accounts: 1 });
}

test.each<[string, Partial<PaymentRequirements>, string]>([
  ["a smaller amount", { amount: "1" }, "requirements_mismatch"],
  ["a larger amount", { amount: "40001" }, "requirements_mismatch"],
  ["another asset", { asset: "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v" }, "requirements_mismatch"],
  ["another payee", { payTo: "11111111111111111111111111111111" }, "requirements_mismatch"],
  ["another network", { network: "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp" }, "requirements_mismatch"],
  ["a longer time", { maxTimeoutSeconds: 600 }, "requirements_mismatch"],
  ["a memo that nobody quoted", { extra: { memo: "x" } }, "quote_not_found"],
])("accepted terms with %s are refused", async (_, terms, reason) => {
  const all = await startPayments();
  const required = await all.quoted();
  const payload = await payloadFrom(all.chain, all.payer, required);
  const settlement = await all.settle(headerOf({ ...payload, accepted: { ...payload.accepted, ...terms } }));
  expect(settlement).toMatchObject({ kind: "refused", reason });
  expect(receiptOf(settlement)).toMatchObject({ success: false, errorReason: reason, transaction: "" });
  await expectOpen(all, required);
});

test.each<[string, (all: Started) => Promise<Partial<PaymentRequirements>>, string]>([
  ["a smaller amount", async () => ({ amount: "1" }), "invalid_exact_svm_payload_amount_mismatch"],
  ["a larger amount", async () => ({ amount: "40001" }), "invalid_exact_svm_payload_amount_mismatch"],
  [
    "another asset",
    async ({ chain, payer }) => {
      const asset = await chain.createMint();
      await chain.setBalance(payer.address, 1_000_000n, asset);
      await chain.setBalance(chain.payTo, 0n, asset);
      return { asset };
    },
    "invalid_exact_svm_payload_mint_mismatch",
  ],
  [
    "another payee",
    async ({ chain }) => ({ payTo: (await chain.wallet("0")).address }),
    "invalid_exact_svm_payload_recipient_mismatch",
  ],
  [
    "another memo",
    async ({ chain }) => ({ extra: { feePayer: chain.feePayer.address, memo: "forged" } }),
    "invalid_exact_svm_payload_memo_mismatch",
  ],
])("a transaction with %s is refused, and the quote stays open", async (_, terms, reason) => {
  const all = await startPayments();
  const required = await all.quoted();
  const header = await paySomethingElse(all.chain, all.payer, required, await terms(all));
  expect(await all.settle(header)).toMatchObject({ kind: "refused", reason });
  await expectOpen(all, required);
});

test.each<BadPayment>([
  ...badPayments,
  [
    "whose fee somebody else pays",
    ({ chain, payer }, required) => oddPayment(chain, payer, required, { feePayer: payer.address }),
    "fee_payer_mismatch",
  ],
  [
    "that asks for too many compute units",
    ({ chain, payer }, required) => oddPayment(chain, payer, required, { units: 200_001n }),
    "invalid_exact_svm_payload_transaction_instructions_compute_limit_instruction_too_high",
  ],
  [
    "that offers too high a priority fee",
    ({ chain, payer }, required) => oddPayment(chain, payer, required, { microLamports: 50_001n }),
    "invalid_exact_svm_payload_transaction_instructions_compute_price_instruction_too_high",
  ],
  [
    "that may land whenever its payer likes, by a durable nonce",
    ({ chain, payer }, required) => oddPayment(chain, payer, required, { nonce: true }),
    "invalid_exact_svm_payload_transaction_instructions_compute_limit_instruction",
  ],
  [
    "with the memo of two payments",
    ({ chain, payer }, required) => oddPayment(chain, payer, required, { more: ["memo"] }),
    "invalid_exact_svm_payload_memo_count",
  ],
  [
    "that moves more than was quoted",
    ({ chain, payer }, required) => oddPayment(chain, payer, required, { more: ["transfer"] }),
    "invalid_exact_svm_payload_unknown_fifth_instruction",
  ],
  [
    "that raises its fee at the end",
    ({ chain, payer }, required) => oddPayment(chain, payer, required, { more: ["fee"] }),
    "invalid_exact_svm_payload_unknown_fifth_instruction",
  ],
  [
    "whose accounts a lookup table hides",
    ({ chain, payer }, required) => oddPayment(chain, payer, required, { hidden: true }),
    "fee_payer_not_isolated",
  ],
])("a payment %s is refused, and costs the fee payer nothing", async (_, make, reason) => {
  const all = await startPayments();
  const before = all.chain.lamports(all.chain.feePayer.address);
  const required = await all.quoted();
  expect(await all.settle(await make(all, required))).toMatchObject({ kind: "refused", reason });
  expect(all.chain.lamports(all.chain.feePayer.address)).toBe(before);
  expect(all.chain.calls["sendTransaction"]).toBeUndefined();
  await expectOpen(all, required);
});

test("a payment made by hand within the caps is accepted, at the highest allowed fee", async () => {
  const all = await startPayments();
  const { chain } = all;
  const before = chain.lamports(chain.feePayer.address);
  const header = await oddPayment(chain, all.payer, await all.quoted(), { units: 200_000n, microLamports: 50_000n });
  expect(await all.settle(header)).toMatchObject({ kind: "settled" });
  expect(before - chain.lamports(chain.feePayer.address)).toBe(20_000n);
});

test("a request whose price has risen gets a new quote, and nothing is taken", async () => {
  const all = await startPayments();
  const required = await all.quoted();
  const { header } = await payFrom(all.chain, all.payer, required);
  expect(await all.settle(header, { priceNanoUsd: priceNanoUsd + 1n })).toMatchObject({
    kind: "refused",
    reason: "price_changed",
  });
  expect(await all.received()).toBe(0n);
  expect(await all.settle(header)).toMatchObject({ kind: "settled" });
});

test("a quote of an earlier fee payer is not settled by another", async () => {
  const all = await startPayments();
  const required = await all.quoted();
  const { header, memo } = await payFrom(all.chain, all.payer, required);
  const { secret } = await all.chain.wallet(undefined, { sol: 1n });
  const instance = await openPayments(all.uri, all.clock, { ...settingsOf(all.chain), X402_FEE_PAYER_KEY: secret });
  expect(await settlePayment(instance, header)).toMatchObject({
    kind: "refused",
    reason: "invalid_exact_svm_fee_payer_not_managed_by_facilitator",
  });
  expect(await quoteDocument(all, memo)).toMatchObject({ state: "open" });
  await expectOpen(all, required);
});

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64");

test.each([
  ["nothing", ""],
  ["no base64", "@@@"],
  ["no JSON", Buffer.from("hello").toString("base64")],
  ["null", encoded(null)],
  ["an array", encoded([])],
  ["another version", encoded({ x402Version: 1, scheme: "exact", payload: { transaction: "AA==" } })],
  ["a transaction that is none", "transaction"],
  ["a memo that is an object", "memo"],
  ["17 KB", encoded("x".repeat(17_000))],
])("a header with %s is 400", async (_, header) => {
  const { settle, chain, payer, quoted } = await startPayments();
  const payload = await payloadFrom(chain, payer, await quoted());
  const made = {
    transaction: headerOf({ ...payload, payload: { transaction: "AAAA" } }),
    memo: headerOf({ ...payload, accepted: { ...payload.accepted, extra: { memo: { $gt: "" } } } }),
  };
  const sent = header in made ? made[header as keyof typeof made] : header;
  await expect(settle(sent)).rejects.toMatchObject({ status: 400, param: "payment-signature" });
});

test("an expired quote cannot be paid", async () => {
  const { pay, settle, clock, received } = await startPayments({ X402_QUOTE_SECONDS: "60" });
  const { header } = await pay();
  clock.later(60_000);
  expect(await settle(header)).toMatchObject({ kind: "refused", reason: "quote_expired" });
  expect(await received()).toBe(0n);
});

test("a settled quote takes no second payment", async () => {
  const { quoted, settle, chain, payer, received } = await startPayments();
  const required = await quoted();
  const first = await payFrom(chain, payer, required);
  expect(await settle(first.header)).toMatchObject({ kind: "settled" });
  chain.advance(1);
  const second = await payFrom(chain, payer, required);
  expect(second.header).not.toBe(first.header);
  expect(await settle(second.header)).toMatchObject({ kind: "refused", reason: "quote_already_used" });
  expect(await received()).toBe(micro(priceNanoUsd));
});

test("two payments for one quote at once: one is taken", async () => {
  const { quoted, another, chain, payer, received, money, ...all } = await startPayments();
  const required = await quoted();
  const other = await another();
  const first = await payFrom(chain, payer, required);
  chain.advance(1);
  const second = await payFrom(chain, payer, required);
  const kinds = await Promise.all([all.settle(first.header), settlePayment(other, second.header)]);
  expect(kinds.map(({ kind }) => kind).toSorted()).toEqual(["refused", "settled"]);
  expect(await received()).toBe(micro(priceNanoUsd));
  expect(await money.check()).toMatchObject({ ok: true, accounts: 1 });
});

test("a payment that is a day old pays only for work that began before", async () => {
  const { pay, settle, clock, x402 } = await startPayments();
  const { header, memo } = await pay();
  expect(await settle(header)).toMatchObject({ kind: "settled" });
  clock.later(24 * 3_600_000 - 60_000);
  expect(await settle(header)).toMatchObject({ kind: "settled" });
  clock.later(60_000);
  expect(await settle(header)).toMatchObject({ kind: "refused", reason: "payment_expired" });
  const settled = { kind: "settled", account: `x402:${memo}` };
  expect(await x402.find({ header, requestHash })).toMatchObject({ kind: "expired", settled });
});
