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
  priceNanoUsd,
  quoteDocument,
  receiptOf,
  request,
  type Started,
  settingsOf,
  settlePayment,
  startPayments,
} from "../support/payments-setup.ts";
import {
  type BadPayment,
  byHand,
  expired,
  fromWallet,
  inAnotherAsset,
  oddPayment,
  renamed,
  signedFor,
  toAnotherPayee,
  withAnotherMemo,
  withCorruptSignature,
} from "../support/payments-transactions.ts";

const requestHash = hashOf(request);

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

const mismatches: readonly [string, Partial<PaymentRequirements>][] = [
  ["a smaller amount", { amount: "1" }],
  ["a larger amount", { amount: "40001" }],
  ["another asset", { asset: "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v" }],
  ["another payee", { payTo: "11111111111111111111111111111111" }],
  ["another network", { network: "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp" }],
  ["a longer time", { maxTimeoutSeconds: 600 }],
];
const invalid = "invalid_exact_svm_payload";
const instructions = `${invalid}_transaction_instructions`;
const failedInSimulation = "invalid_exact_svm_transaction_simulation_failed";

test.each<BadPayment>([
  ...mismatches.map(([what, terms]): BadPayment => [`that names ${what}`, renamed(terms), "requirements_mismatch"]),
  ["for a quote that nobody gave", renamed({ extra: { memo: "x" } }), "quote_not_found"],
  ["of a smaller amount", signedFor({ amount: "1" }), `${invalid}_amount_mismatch`],
  ["of a larger amount", signedFor({ amount: "40001" }), `${invalid}_amount_mismatch`],
  ["in another asset", inAnotherAsset, `${invalid}_mint_mismatch`],
  ["to another payee", toAnotherPayee, `${invalid}_recipient_mismatch`],
  ["with another memo", withAnotherMemo, `${invalid}_memo_mismatch`],
  ["whose blockhash has expired", expired, failedInSimulation],
  ["with a corrupt signature", withCorruptSignature, `${invalid}_signature_invalid`],
  ["from a payer who has too little", fromWallet("0.039999"), failedInSimulation],
  ["from a payer without a token account", fromWallet(undefined), failedInSimulation],
  ["with the fee payer smuggled into an instruction", byHand({ smuggled: true }), "fee_payer_not_isolated"],
  ["whose fee the payer pays", byHand({ payerPaysFee: true }), "fee_payer_mismatch"],
  [
    "that asks for too many compute units",
    byHand({ units: 200_001n }),
    `${instructions}_compute_limit_instruction_too_high`,
  ],
  [
    "that offers too high a priority fee",
    byHand({ microLamports: 50_001n }),
    `${instructions}_compute_price_instruction_too_high`,
  ],
  [
    "that may land whenever its payer likes, by a durable nonce",
    byHand({ nonce: true }),
    `${instructions}_compute_limit_instruction`,
  ],
  ["with the memo of two payments", byHand({ more: ["memo"] }), `${invalid}_memo_count`],
  ["that moves more than was quoted", byHand({ more: ["transfer"] }), `${invalid}_unknown_fifth_instruction`],
  ["that raises its fee at the end", byHand({ more: ["fee"] }), `${invalid}_unknown_fifth_instruction`],
  ["whose accounts a lookup table hides", byHand({ hidden: true }), "fee_payer_not_isolated"],
])("a payment %s is refused, costs the fee payer nothing, and leaves the quote open", async (_, make, reason) => {
  const all = await startPayments();
  const { chain } = all;
  const before = chain.lamports(chain.feePayer.address);
  const required = await all.quoted();
  const settlement = await all.settle(await make(all, required));
  expect(settlement).toMatchObject({ kind: "refused", reason });
  expect(receiptOf(settlement)).toMatchObject({ success: false, errorReason: reason, transaction: "" });
  expect(chain.lamports(chain.feePayer.address)).toBe(before);
  expect(chain.calls["sendTransaction"]).toBeUndefined();
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
