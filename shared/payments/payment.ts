import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { getBase64Encoder, getCompiledTransactionMessageDecoder, getTransactionDecoder } from "@solana/kit";
import type { PaymentPayload, PaymentRequirements } from "@x402/core/types";
import { assertFeePayerIsolated, getTokenPayerFromTransaction } from "@x402/svm";
import { ExactSvmScheme } from "@x402/svm/exact/facilitator";
import { z } from "zod";
import { invalidValue } from "#errors";
import { dayMs } from "#platform/clock";
import type { SolanaConfig } from "./config.ts";
import type { Quote } from "./quotes.ts";

const param = "payment-signature";
/** A transaction has at most 1,232 bytes; the rest is a copy of the quote. */
const limitBytes = 16 * 1024;

const text = z.string().max(4_096);
const shape = z.looseObject({
  x402Version: z.literal(2),
  accepted: z.looseObject({
    scheme: text,
    network: text,
    asset: text,
    amount: text,
    payTo: text,
    maxTimeoutSeconds: z.number(),
    extra: z.looseObject({ memo: text }),
  }),
  payload: z.looseObject({ transaction: text }),
});

const malformed = () => invalidValue(param, "PAYMENT-SIGNATURE cannot be decoded as an x402 version 2 payment.");

/** Excludes the signatures, like the x402 packages, so that the hash does not depend on how the payment is signed. */
export const messageHashOf = (messageBytes: ArrayLike<number>): string =>
  createHash("sha256").update(Uint8Array.from(messageBytes)).digest("base64");

export const decodeTransaction = (base64: string) => getTransactionDecoder().decode(getBase64Encoder().encode(base64));

export type Payment = ReturnType<typeof decodePayment>;

/** Decodes a `PAYMENT-SIGNATURE` without verifying it. Throws 400 if it cannot be decoded. */
export function decodePayment(header: string) {
  if (header.length > limitBytes || !/^[A-Za-z0-9+/]+={0,2}$/.test(header)) throw malformed();
  try {
    const payload = shape.parse(JSON.parse(Buffer.from(header, "base64").toString("utf8")));
    const transaction = decodeTransaction(payload.payload.transaction);
    const message = getCompiledTransactionMessageDecoder().decode(transaction.messageBytes);
    const [feePayer] = message.staticAccounts;
    if (feePayer === undefined || message.version === 1) throw malformed();
    return {
      payload: payload as unknown as PaymentPayload,
      transaction,
      /** The memo of the quote that the payment claims to pay. */
      memo: payload.accepted.extra.memo,
      messageHash: messageHashOf(transaction.messageBytes),
      /** The transaction can land only while the network accepts this blockhash. */
      blockhash: String(message.lifetimeToken),
      feePayer,
      /** The owner of the tokens. Empty if there is no transfer. */
      payer: getTokenPayerFromTransaction(transaction),
    };
  } catch {
    throw malformed();
  }
}

/** The time for which a settled payment pays for its request. */
export const paymentLifetimeMs = dayMs;

const notUsed = () => Promise.reject(new Error("a payment is only verified here"));

/**
 * Returns the reason why this transaction does not pay exactly what was quoted, or undefined if it will once it is on
 * chain. Does not read the network. Called before the quote is claimed, even for a remote facilitator: a transaction
 * found on chain later is identified only by the hash of its message, and the payer may have had a facilitator settle
 * it for less.
 */
export async function verify(payment: Payment, requirements: PaymentRequirements, caps: SolanaConfig["caps"]) {
  const feePayer = String(requirements.extra["feePayer"]);
  if (payment.feePayer !== feePayer) return "fee_payer_mismatch";
  // The x402 packages allow the fee payer among a memo's accounts, but the specification of the scheme does not.
  // Accounts in lookup tables cannot be checked, so they are also refused.
  const isolated = assertFeePayerIsolated(payment.transaction, feePayer);
  if (!(await isolated.then(() => true).catch(() => false))) return "fee_payer_not_isolated";
  const signer = {
    getAddresses: () => [payment.feePayer],
    simulateTransaction: () => Promise.resolve(),
    signTransaction: notUsed,
    sendTransaction: notUsed,
    confirmTransaction: notUsed,
  };
  const result = await new ExactSvmScheme(signer, undefined, caps).verify(payment.payload, requirements);
  return result.isValid ? undefined : (result.invalidReason ?? "invalid_payment");
}

/** Returns the reason why the payment does not pay for this request, according to the quote that it names. */
export function quoteFault(
  payment: Payment,
  quote: Quote | undefined,
  { requestHash, now }: { readonly requestHash: string; readonly now: number },
): string | undefined {
  if (!quote) return "quote_not_found";
  if (quote.requestHash !== requestHash) return "quote_for_another_request";
  const { requirements, state, messageHash, expiresAt, settledAt, paidBackAt } = quote;
  if (!isDeepStrictEqual(payment.payload.accepted, requirements)) return "requirements_mismatch";
  if (state === "open") return expiresAt && expiresAt.getTime() <= now ? "quote_expired" : undefined;
  if (messageHash !== payment.messageHash) return "quote_already_used";
  if (paidBackAt) return "payment_paid_back";
  return settledAt && settledAt.getTime() + paymentLifetimeMs <= now ? "payment_expired" : undefined;
}
