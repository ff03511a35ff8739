import { isDeepStrictEqual } from "node:util";
import type { PaymentRequirements } from "@x402/core/types";
import { assertFeePayerIsolated } from "@x402/svm";
import { ExactSvmScheme } from "@x402/svm/exact/facilitator";
import type { Caps } from "./config.ts";
import { decodeTransaction, type Payment } from "./payment-header.ts";
import type { Quote } from "./quotes.ts";

/** A payment is good for its request so long. */
export const goodMs = 24 * 3_600_000;

const transactionOf = ({ payload }: Payment) => decodeTransaction(payload.payload["transaction"] as string);

/** The packages allow the fee payer among a memo's accounts; the specification does not. Lookup tables hide it. */
async function isIsolated(payment: Payment, feePayer: string): Promise<boolean> {
  try {
    await assertFeePayerIsolated(transactionOf(payment), feePayer);
    return true;
  } catch {
    return false;
  }
}

const neither = () => Promise.reject(new Error("a payment is only verified here"));

/**
 * Why this transaction does not pay exactly what was quoted, and nothing else; undefined: it does, once it is on chain.
 * The network is not asked. Done before anything is claimed, whoever settles: what is found on chain later is known by
 * the hash of its message alone, and a remote facilitator may have been asked to settle it for less.
 */
async function verify(payment: Payment, requirements: PaymentRequirements, caps: Caps) {
  const feePayer = String(requirements.extra["feePayer"]);
  if (payment.feePayer !== feePayer) return "fee_payer_mismatch";
  if (!(await isIsolated(payment, feePayer))) return "fee_payer_not_isolated";
  const signer = {
    getAddresses: () => [payment.feePayer],
    simulateTransaction: () => Promise.resolve(),
    signTransaction: neither,
    sendTransaction: neither,
    confirmTransaction: neither,
  };
  const verdict = await new ExactSvmScheme(signer, undefined, caps).verify(payment.payload, requirements);
  return verdict.isValid ? undefined : (verdict.invalidReason ?? "invalid_payment");
}

/** Why this is no payment for this request, whatever the chain says. What has claimed a quote was verified before. */
export async function paymentFault(
  payment: Payment,
  quote: Quote | undefined,
  { requestHash, caps, now }: { readonly requestHash: string; readonly caps: Caps; readonly now: number },
): Promise<string | undefined> {
  if (!quote) return "quote_not_found";
  if (quote.requestHash !== requestHash) return "quote_for_another_request";
  const { requirements, state, messageHash, expiresAt, settledAt, paidBackAt } = quote;
  if (!isDeepStrictEqual(payment.payload.accepted, requirements)) return "requirements_mismatch";
  if (state === "open")
    return expiresAt && expiresAt.getTime() <= now ? "quote_expired" : verify(payment, requirements, caps);
  if (messageHash !== payment.messageHash) return "quote_already_used";
  if (paidBackAt) return "payment_paid_back";
  return settledAt && settledAt.getTime() + goodMs <= now ? "payment_expired" : undefined;
}
