import { encodePaymentResponseHeader } from "@x402/core/http";
import { noCapacity, type ServiceError } from "#errors";
import { paymentAccount } from "#money";
import { type Clock, sleep } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { Chain } from "./chain.ts";
import type { X402Config } from "./config.ts";
import type { Facilitator, Outcome } from "./facilitators.ts";
import { decodePayment, type Payment, paymentFault } from "./payment.ts";
import { type Claimed, isClaimed, type Quote, type Quotes, unitsOf } from "./quotes.ts";
import type { createReconcile } from "./reconcile.ts";

/** A payment as it came with a request. */
export interface SentPayment {
  /** The value of `PAYMENT-SIGNATURE`. */
  readonly header: string;
  /** Of the method, the path and the whole body: a payment is for this request alone. */
  readonly requestHash: string;
}

/** Of the response. */
type Headers = Readonly<Record<string, string>>;

/** The request is paid for: it is an ordinary call on the account, with `key` as its idempotency key. */
export interface Settled {
  readonly kind: "settled";
  readonly account: string;
  readonly key: string;
  readonly buybackToken: string | undefined;
  readonly headers: Headers;
}

/** The payment does not pay for this request, and nothing was taken. */
interface Refused {
  readonly kind: "refused";
  readonly reason: string;
  readonly headers: Headers;
}

/** Whether the payment was taken is not known yet. The same request with the same payment finds out. */
export interface Pending {
  readonly kind: "pending";
  readonly error: ServiceError;
  readonly headers: Headers;
}

/** A payment that has to be settled, or that does not pay for the request. */
export type Unpaid =
  | Refused
  /** Settled more than a day ago: pays only for work that began before, and is refused for anything else. */
  | (Omit<Refused, "kind"> & { readonly kind: "expired"; readonly settled: Settled })
  /** It can be settled, until a time in Unix milliseconds. */
  | { readonly kind: "open"; readonly payment: Payment; readonly until: number; readonly headers: Headers };

const waitMs = 50_000;
const pollMs = 250;

/** A quote that this request has claimed. */
interface OwnClaim {
  readonly quote: Claimed;
  readonly payment: Payment;
  readonly claim: string;
}

interface Deps extends Pick<ReturnType<typeof createReconcile>, "creditPayment" | "resolve"> {
  readonly x402: Pick<X402Config, "network" | "caps">;
  readonly quotes: Quotes;
  readonly chain: Pick<Chain, "find">;
  readonly facilitator: () => Promise<Facilitator>;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createSettle({ x402, quotes, chain, facilitator, creditPayment, resolve, clock, log }: Deps) {
  const { network, caps } = x402;
  const receipt = (response: Omit<Parameters<typeof encodePaymentResponseHeader>[0], "network">): Headers => ({
    "PAYMENT-RESPONSE": encodePaymentResponseHeader({ ...response, network }),
  });

  const settled = ({ _id: memo, messageHash, buybackToken, signature = "", payer }: Claimed): Settled => ({
    kind: "settled",
    account: paymentAccount(memo),
    key: messageHash,
    buybackToken,
    headers: receipt({ success: true, transaction: signature, payer }),
  });

  const refused = (reason: string, { payer }: Payment): Refused => ({
    kind: "refused",
    reason,
    headers: receipt({ success: false, errorReason: reason, transaction: "", payer }),
  });

  /** A transaction that is on chain already fails its simulation, so a refusal is checked against the chain. */
  async function outcomeOf(settler: Facilitator, { quote, payment, claim }: OwnClaim): Promise<Outcome> {
    const recordSignature = (signature: string) => quotes.recordSignature(quote._id, claim, signature);
    const outcome = await settler.settle(payment, quote.requirements, recordSignature);
    if (outcome.kind !== "refused") return outcome;
    try {
      const landed = await chain.find(quote);
      return landed && !landed.failed ? { kind: "settled", signature: landed.signature } : outcome;
    } catch (reason) {
      return { kind: "unknown", reason };
    }
  }

  /** Undefined: only the chain knows. */
  async function settleClaim(settler: Facilitator, own: OwnClaim): Promise<Settled | Refused | undefined> {
    const { quote, payment, claim } = own;
    const memo = quote._id;
    const outcome = await outcomeOf(settler, own);
    switch (outcome.kind) {
      case "settled":
        await creditPayment(quote, outcome.signature);
        return settled({ ...quote, signature: outcome.signature });
      case "refused":
        await quotes.release(memo, claim);
        return refused(outcome.reason, payment);
      case "unsent":
        await quotes.release(memo, claim);
        throw noCapacity("The payment could not be settled right now; nothing was taken. Repeat the request as it is.");
      case "unknown":
        log.warn({ memo, err: outcome.reason }, "the outcome of a payment is looked up on chain");
        await quotes.markUnknown(memo, claim);
        return undefined;
    }
  }

  /** Undefined: another request has claimed the quote, or only the chain knows the outcome. */
  async function claimAndSettle(quote: Quote, payment: Payment, priceNanoUsd: bigint) {
    if (unitsOf(priceNanoUsd) > BigInt(quote.requirements.amount)) return refused("price_changed", payment);
    // Before the claim: only this facilitator could end it.
    const settler = await facilitator();
    const claim = await quotes.claim(quote._id, payment);
    if ("id" in claim) {
      const { messageHash, blockhash, payer } = payment;
      return settleClaim(settler, { quote: { ...quote, messageHash, blockhash, payer }, payment, claim: claim.id });
    }
    return claim.refused === "used" ? refused("payment_already_used", payment) : undefined;
  }

  /** Undefined: it is still being settled, or its outcome is unknown. */
  async function join(quote: Claimed): Promise<Settled | undefined> {
    if (quote.state === "settled") return settled(quote);
    const isDue = quote.lookAt !== undefined && quote.lookAt.getTime() <= clock.now();
    const resolved = isDue ? await resolve(quote) : "unknown";
    if (resolved === "unknown") await sleep(clock, pollMs);
    return undefined;
  }

  /** Follows a payment until it is settled or refused. Without a price it takes nothing, and stops at an open quote. */
  async function follow(
    payment: Payment,
    { requestHash, until, priceNanoUsd }: { requestHash: string; until: number; priceNanoUsd?: bigint },
  ): Promise<Settled | Pending | Unpaid> {
    do {
      const quote = await quotes.find(payment.memo);
      const reason = await paymentFault(payment, quote, { requestHash, caps, now: clock.now() });
      if (reason === "payment_expired" && quote && isClaimed(quote))
        return { ...refused(reason, payment), kind: "expired", settled: settled(quote) };
      if (!quote || reason !== undefined) return refused(reason ?? "quote_not_found", payment);
      if (!isClaimed(quote) && priceNanoUsd === undefined) return { kind: "open", payment, until, headers: {} };
      const settlement = isClaimed(quote)
        ? await join(quote)
        : await claimAndSettle(quote, payment, priceNanoUsd as bigint);
      if (settlement) return settlement;
    } while (clock.now() < until);
    const error = noCapacity(
      "The network has not confirmed the payment yet. Repeat the request with the same payment.",
    );
    return { kind: "pending", error, headers: {} };
  }

  return {
    find: ({ header, requestHash }: SentPayment) =>
      follow(decodePayment(header), { requestHash, until: clock.now() + waitMs }),
    follow,
  };
}
