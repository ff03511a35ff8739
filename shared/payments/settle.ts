import { encodePaymentResponseHeader } from "@x402/core/http";
import { noCapacity } from "#errors";
import { type Money, paymentAccount } from "#money";
import { sleep } from "#platform/clock";
import { randomBase62 } from "#platform/ids";
import type { Uses } from "#platform/uses";
import type { Chain } from "./chain.ts";
import type { SolanaConfig } from "./config.ts";
import type { Facilitator, Outcome } from "./facilitators.ts";
import { decodePayment, type Payment, quoteFault, verify } from "./payment.ts";
import { amountNanoUsd, type ClaimedQuote, isClaimed, type Quote, type Quotes, unitsOf } from "./quotes.ts";

type Headers = Readonly<Record<string, string>>;

/** The request is paid: it is an ordinary call on the account, with `key` as its idempotency key. */
interface Settled {
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

/** Settled more than a day ago: the payment pays only for work that began before, and is refused for anything else. */
interface Expired extends Omit<Refused, "kind"> {
  readonly kind: "expired";
  readonly settled: Settled;
}

/** Verified, but not settled yet. */
interface Open {
  readonly kind: "open";
  readonly payment: Payment;
  readonly quote: Quote;
  readonly requestHash: string;
  /** Unix milliseconds until which the request waits for the settlement. */
  readonly until: number;
}

const waitMs = 50_000;
const pollMs = 250;
/** A blockhash is valid for 150 blocks. The slack is for nodes that differ in height. */
const blockhashLife = 150n;
const slack = 32n;
const retryDelayMs = 2_000;
const batchSize = 100;

/** Settles payments, and resolves unknown outcomes from the chain alone. Safe in any number of concurrent processes. */
export function createSettle(
  deps: Uses<"clock" | "log"> & {
    solana: SolanaConfig;
    quotes: Quotes;
    chain: Chain;
    facilitator: () => Promise<Facilitator>;
    money: Pick<Money, "creditPayment">;
  },
) {
  const { solana, quotes, chain, facilitator, money, clock, log } = deps;
  const { network, caps } = solana;
  const receipt = (response: Omit<Parameters<typeof encodePaymentResponseHeader>[0], "network">): Headers => ({
    "PAYMENT-RESPONSE": encodePaymentResponseHeader({ ...response, network }),
  });

  const settled = ({ _id: memo, messageHash, buybackToken, signature = "", payer }: ClaimedQuote): Settled => ({
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

  /** Written first: after a crash in between, the quote is looked up again, and the credit counts once. */
  async function credit(quote: ClaimedQuote, signature: string): Promise<Settled> {
    const { _id: memo, messageHash, buybackToken } = quote;
    const nanoUsd = amountNanoUsd(quote);
    await money.creditPayment({ memo, messageHash, nanoUsd, transaction: signature, buybackToken });
    await quotes.markSettled(quote, signature);
    return settled({ ...quote, signature });
  }

  /** A transaction that is already on chain fails its simulation, so a refusal is checked against the chain. */
  async function confirmRefusal(quote: ClaimedQuote, outcome: Outcome): Promise<Outcome> {
    if (outcome.kind !== "refused") return outcome;
    try {
      const landed = await chain.find(quote);
      return landed && !landed.failed ? { kind: "settled", signature: landed.signature } : outcome;
    } catch (reason) {
      return { kind: "unknown", reason };
    }
  }

  /** Returns undefined if another request has claimed the quote, or if only the chain knows the outcome. */
  async function claimAndSettle(
    { payment, quote }: Open,
    priceNanoUsd: bigint,
  ): Promise<Settled | Refused | undefined> {
    if (unitsOf(priceNanoUsd) > BigInt(quote.requirements.amount)) return refused("price_changed", payment);
    // Must precede the claim, because only this facilitator could end it.
    const settler = await facilitator();
    const { _id: memo, requirements } = quote;
    const claim = randomBase62(16);
    const claiming = await quotes.claim(memo, claim, payment);
    if (claiming !== "claimed") return claiming === "used" ? refused("payment_already_used", payment) : undefined;

    const { messageHash, blockhash, payer } = payment;
    const claimed: ClaimedQuote = { ...quote, messageHash, blockhash, payer };
    const recordSignature = (signature: string) => quotes.recordSignature(memo, claim, signature);
    const outcome = await confirmRefusal(claimed, await settler.settle(payment, requirements, recordSignature));
    switch (outcome.kind) {
      case "settled":
        return credit(claimed, outcome.signature);
      case "refused":
        await quotes.release(memo, claim);
        return refused(outcome.reason, payment);
      case "unsent":
        await quotes.release(memo, claim);
        throw noCapacity("The payment could not be settled right now; nothing was taken. Repeat the request as it is.");
      case "unknown":
        log.warn({ memo, err: outcome.reason }, "the outcome of a payment is unknown and will be looked up on chain");
        await quotes.markUnknown(memo, claim);
        return undefined;
    }
  }

  /** Follows a payment until it is known to be settled, refused, or still to be settled. */
  async function look(
    sent: Pick<Open, "payment" | "requestHash" | "until">,
  ): Promise<Settled | Refused | Expired | Open> {
    const { payment, requestHash, until } = sent;
    while (clock.now() < until) {
      const quote = await quotes.find(payment.memo);
      const reason = quoteFault(payment, quote, { requestHash, now: clock.now() });
      if (reason === "payment_expired" && quote && isClaimed(quote))
        return { ...refused(reason, payment), kind: "expired", settled: settled(quote) };
      if (!quote || reason !== undefined) return refused(reason ?? "quote_not_found", payment);
      if (!isClaimed(quote)) return { kind: "open", payment, quote, requestHash, until };
      if (quote.state === "settled") return settled(quote);
      const isDue = quote.lookAt !== undefined && quote.lookAt.getTime() <= clock.now();
      if (!isDue || (await resolve(quote)) === "unknown") await sleep(clock, pollMs);
    }
    throw noCapacity("The network has not confirmed the payment yet. Repeat the request with the same payment.");
  }

  /**
   * Looks up the payment of a request, and waits while another process settles it. Takes nothing, so that a request
   * with a settled payment needs neither a check nor a price. Throws 400 for a header that cannot be decoded, and 503
   * while the outcome is unknown, which repeating the request with the same payment will resolve.
   */
  async function find({ header, requestHash }: { readonly header: string; readonly requestHash: string }) {
    const payment = decodePayment(header);
    const found = await look({ payment, requestHash, until: clock.now() + waitMs });
    const fault = found.kind === "open" ? await verify(payment, found.quote.requirements, caps) : undefined;
    return fault === undefined ? found : refused(fault, payment);
  }

  /**
   * Settles a payment that `find` found open. Call it only for requests that would be admitted. Throws 503 if nothing
   * could be settled and nothing was taken, and while the outcome is unknown.
   */
  async function settle(open: Open, priceNanoUsd: bigint): Promise<Settled | Refused | Expired> {
    for (let found: Awaited<ReturnType<typeof look>> = open; ; ) {
      if (found.kind !== "open") return found;
      found = (await claimAndSettle(found, priceNanoUsd)) ?? (await look(open));
    }
  }

  /** Also returns `unknown` while the chain is unavailable. */
  async function resolve(quote: ClaimedQuote): Promise<"settled" | "reopened" | "unknown"> {
    try {
      const expired = await chain.expiredSince(quote);
      const landed = await chain.find(quote, expired);
      if (landed && !landed.failed) {
        await credit(quote, landed.signature);
        return "settled";
      }
      if (landed ? landed.finalized : expired !== undefined) {
        if (!(await quotes.reopen(quote))) return "unknown";
        // From here on the log is the only record of this payment.
        const { _id: memo, payer, signature = landed?.signature } = quote;
        log.warn({ memo, payer, signature }, landed ? "a payment failed on chain" : "a payment never came on chain");
        return "reopened";
      }
      const overAtHeight = quote.overAtHeight ?? (await chain.height("processed")) + blockhashLife + slack;
      await quotes.postpone(quote, retryDelayMs, overAtHeight);
      return "unknown";
    } catch (error) {
      log.warn({ err: error, memo: quote._id }, "the outcome of a payment is not known yet");
      // Moved behind the other due payments, because it may be the only one that fails.
      await quotes.postpone(quote, retryDelayMs).catch(() => undefined);
      return "unknown";
    }
  }

  /** Resolves to the numbers of resolved payments; `unknown` ones are looked up again later. */
  async function reconcile() {
    const counts = { settled: 0, reopened: 0, unknown: 0 };
    for (const quote of await quotes.due(batchSize)) counts[await resolve(quote)] += 1;
    return counts;
  }

  return { find, settle, reconcile };
}
