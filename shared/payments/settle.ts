import { isDeepStrictEqual } from "node:util";
import { encodePaymentResponseHeader } from "@x402/core/http";
import { noCapacity } from "#errors";
import { paymentAccount } from "#money";
import { type Clock, sleep } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { type Facilitator, isIsolated } from "./facilitator.ts";
import { decodePayment, type Payment } from "./payment-header.ts";
import { type Claimed, isClaimed, type Quote, type Quotes } from "./quotes.ts";
import type { createResolve } from "./resolve.ts";

export interface SettleAsk {
  /** `PAYMENT-SIGNATURE` as it came. */
  readonly header: string;
  /** Of the request that it came with, as it was quoted. */
  readonly requestHash: string;
  /** Throws for a request that cannot be worked on now: asked before anything is taken for it. */
  readonly check?: (() => Promise<unknown>) | undefined;
}

export type Settlement =
  /** Paid for: the call is an ordinary one on the account, with `key` as its idempotency key. */
  | {
      readonly kind: "paid";
      readonly account: string;
      readonly key: string;
      readonly buybackToken: string | undefined;
      /** `PAYMENT-RESPONSE`. */
      readonly receipt: string;
    }
  /** Nothing was taken for this request: 402 with a new quote, `reason` as its error. */
  | { readonly kind: "refused"; readonly reason: string; readonly receipt: string };

/** A payment is good for its request so long. */
export const goodMs = 24 * 3_600_000;
const waitMs = 50_000;
const pollMs = 250;

interface Deps extends Pick<ReturnType<typeof createResolve>, "settled" | "resolve"> {
  readonly network: `solana:${string}`;
  readonly quotes: Quotes;
  readonly facilitator: () => Promise<Facilitator>;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createSettle({ network, quotes, facilitator, settled, resolve, clock, log }: Deps) {
  const paid = ({ _id: memo, messageHash, buybackToken, signature = "", payer = "" }: Claimed): Settlement => ({
    kind: "paid",
    account: paymentAccount(memo),
    key: messageHash,
    buybackToken,
    receipt: encodePaymentResponseHeader({ success: true, transaction: signature, network, payer }),
  });

  const refused = (reason: string, { payer }: Payment): Settlement => ({
    kind: "refused",
    reason,
    receipt: encodePaymentResponseHeader({ success: false, errorReason: reason, transaction: "", network, payer }),
  });

  /** Why this is no payment for this request, whatever the chain says. */
  async function misfit(quote: Quote | undefined, payment: Payment, requestHash: string): Promise<string | undefined> {
    if (!quote) return "quote_not_found";
    if (quote.requestHash !== requestHash) return "quote_for_another_request";
    const { requirements, state, messageHash } = quote;
    if (!isDeepStrictEqual(payment.payload.accepted, requirements)) return "requirements_mismatch";
    const feePayer = String(requirements.extra["feePayer"]);
    if (payment.feePayer !== feePayer) return "fee_payer_mismatch";
    if (!(await isIsolated(payment, feePayer))) return "fee_payer_not_isolated";
    const { expiresAt, settledAt, paidBackAt } = quote;
    if (state === "open") return expiresAt && expiresAt.getTime() <= clock.now() ? "quote_expired" : undefined;
    if (messageHash !== payment.messageHash) return "quote_already_used";
    if (paidBackAt) return "payment_paid_back";
    return settledAt && settledAt.getTime() + goodMs <= clock.now() ? "payment_expired" : undefined;
  }

  /** Of a quote that this very call has claimed. Undefined: only the chain knows. */
  async function ask(quote: Quote, payment: Payment, claim: string): Promise<Settlement | undefined> {
    const memo = quote._id;
    const settler = await facilitator();
    const remember = (signature: string) => quotes.remember(memo, claim, signature);
    const outcome = await settler.settle(payment, quote.requirements, remember);
    switch (outcome.kind) {
      case "settled": {
        const { messageHash, blockhash } = payment;
        const { signature, payer } = outcome;
        const claimed = { ...quote, messageHash, blockhash, signature, payer };
        await settled(claimed, signature, payer);
        return paid(claimed);
      }
      case "refused":
        await quotes.release(memo, claim);
        return refused(outcome.reason, payment);
      case "unsent":
        await quotes.release(memo, claim);
        throw noCapacity("The payment could not be settled right now; nothing was taken. Repeat the request as it is.");
      case "unknown":
        log.warn({ memo, err: outcome.reason }, "how a payment ended is asked of the chain");
        await quotes.giveUp(memo, claim);
        return undefined;
    }
  }

  async function claimed(quote: Quote, payment: Payment, check: SettleAsk["check"]): Promise<Settlement | undefined> {
    await check?.();
    // Before anything is claimed that only this facilitator could end.
    await facilitator();
    const claim = await quotes.claim(quote._id, payment);
    if ("id" in claim) return ask(quote, payment, claim.id);
    return claim.refused === "used" ? refused("payment_already_used", payment) : undefined;
  }

  /** Settled, or being settled by somebody, or nobody knows. */
  async function joined(quote: Claimed): Promise<Settlement | undefined> {
    if (quote.state === "settled") return paid(quote);
    const isDue = quote.lookAt !== undefined && quote.lookAt.getTime() <= clock.now();
    const resolved = isDue ? await resolve(quote) : "unknown";
    if (resolved === "unknown") await sleep(clock, pollMs);
    return undefined;
  }

  /**
   * Throws 400 for a header that cannot be decoded; 503 while it cannot be settled or nobody knows whether it was, and
   * then the same request with the same payment finds out.
   */
  return async function settle({ header, requestHash, check }: SettleAsk): Promise<Settlement> {
    const payment = decodePayment(header);
    const until = clock.now() + waitMs;
    do {
      const quote = await quotes.find(payment.memo);
      const reason = await misfit(quote, payment, requestHash);
      if (!quote || reason !== undefined) return refused(reason ?? "quote_not_found", payment);
      const settlement = isClaimed(quote) ? await joined(quote) : await claimed(quote, payment, check);
      if (settlement) return settlement;
    } while (clock.now() < until);
    throw noCapacity("The network has not confirmed the payment yet. Repeat the request with the same payment.");
  };
}
