import { encodePaymentResponseHeader } from "@x402/core/http";
import { noCapacity } from "#errors";
import { paymentAccount } from "#money";
import { type Clock, sleep } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { Chain } from "./chain.ts";
import type { X402 } from "./config.ts";
import type { Facilitator, Outcome } from "./facilitator.ts";
import { paymentFault } from "./payment-fault.ts";
import { decodePayment, type Payment } from "./payment-header.ts";
import { amountOf } from "./quote.ts";
import { type Claimed, isClaimed, type Quote, type Quotes } from "./quotes.ts";
import type { createResolve } from "./resolve.ts";

export interface SettleAsk {
  /** `PAYMENT-SIGNATURE` as it came. */
  readonly header: string;
  /** Of the request that it came with, as it was quoted. */
  readonly requestHash: string;
  /** What the request costs now, asked before anything is taken for it. Throws for one that cannot be worked on. */
  readonly priceNanoUsd?: (() => Promise<bigint>) | undefined;
  /** Whether work that began on the payment runs or has answered: asked when it is a day old, and pays for nothing new. */
  readonly hasBegun?: ((work: { readonly account: string; readonly key: string }) => Promise<boolean>) | undefined;
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

const waitMs = 50_000;
const pollMs = 250;

/** What this very call has claimed. */
interface Asked {
  readonly quote: Claimed;
  readonly payment: Payment;
  readonly claim: string;
}

interface Deps extends Pick<ReturnType<typeof createResolve>, "settled" | "resolve"> {
  readonly x402: Pick<X402, "network" | "caps">;
  readonly quotes: Quotes;
  readonly chain: Pick<Chain, "find">;
  readonly facilitator: () => Promise<Facilitator>;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createSettle({ x402, quotes, chain, facilitator, settled, resolve, clock, log }: Deps) {
  const { network, caps } = x402;
  const paid = ({ _id: memo, messageHash, buybackToken, signature = "", payer }: Claimed): Settlement => ({
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

  /** What is on chain already is refused when it is simulated again. */
  async function outcomeOf(settler: Facilitator, { quote, payment, claim }: Asked): Promise<Outcome> {
    const remember = (signature: string) => quotes.remember(quote._id, claim, signature);
    const outcome = await settler.settle(payment, quote.requirements, remember);
    if (outcome.kind !== "refused") return outcome;
    try {
      const landed = await chain.find(quote);
      return landed && !landed.failed ? { kind: "settled", signature: landed.signature } : outcome;
    } catch (reason) {
      return { kind: "unknown", reason };
    }
  }

  /** Undefined: only the chain knows. */
  async function ask(settler: Facilitator, asked: Asked): Promise<Settlement | undefined> {
    const { quote, payment, claim } = asked;
    const memo = quote._id;
    const outcome = await outcomeOf(settler, asked);
    switch (outcome.kind) {
      case "settled":
        await settled(quote, outcome.signature);
        return paid({ ...quote, signature: outcome.signature });
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

  async function claimed(
    quote: Quote,
    payment: Payment,
    priceNanoUsd: SettleAsk["priceNanoUsd"],
  ): Promise<Settlement | undefined> {
    const price = await priceNanoUsd?.();
    if (price !== undefined && amountOf(price) > BigInt(quote.requirements.amount))
      return refused("price_changed", payment);
    // Before anything is claimed that only this facilitator could end.
    const settler = await facilitator();
    const claim = await quotes.claim(quote._id, payment);
    const { messageHash, blockhash, payer } = payment;
    if ("id" in claim)
      return ask(settler, { quote: { ...quote, messageHash, blockhash, payer }, payment, claim: claim.id });
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
  return async function settle({ header, requestHash, priceNanoUsd, hasBegun }: SettleAsk): Promise<Settlement> {
    const payment = decodePayment(header);
    const until = clock.now() + waitMs;
    do {
      const quote = await quotes.find(payment.memo);
      const reason = await paymentFault(payment, quote, { requestHash, caps, now: clock.now() });
      if (reason === "payment_expired" && quote && isClaimed(quote))
        return (await hasBegun?.({ account: paymentAccount(quote._id), key: quote.messageHash }))
          ? paid(quote)
          : refused(reason, payment);
      if (!quote || reason !== undefined) return refused(reason ?? "quote_not_found", payment);
      const settlement = isClaimed(quote) ? await joined(quote) : await claimed(quote, payment, priceNanoUsd);
      if (settlement) return settlement;
    } while (clock.now() < until);
    throw noCapacity("The network has not confirmed the payment yet. Repeat the request with the same payment.");
  };
}
