import { encodePaymentRequiredHeader } from "@x402/core/http";
import type { PaymentRequired } from "@x402/core/types";
import { unitNanoUsd } from "#money";
import { randomBase62 } from "#platform/ids";
import type { X402 } from "./config.ts";
import type { Facilitator } from "./facilitator.ts";
import type { Quotes } from "./quotes.ts";

export interface QuoteAsk {
  /** Of method, path and the whole body: the payment is for this request alone. */
  readonly requestHash: string;
  /** The most that the request can cost, by list price. */
  readonly priceNanoUsd: bigint;
  readonly resource: { readonly url: string; readonly description: string; readonly mimeType: string };
  /** Checked by `buybackToken`. */
  readonly buybackToken?: string | undefined;
  /** Why what came with the request was no payment. */
  readonly error?: string | undefined;
}

/** What a 402 says: the same in its body and, for the official client, in `PAYMENT-REQUIRED`. Not to be stored by anybody. */
export interface Quoted {
  readonly body: PaymentRequired;
  readonly header: string;
}

/** How long after its signature a payer may wait to send it. A blockhash lives about as long. */
const maxTimeoutSeconds = 60;

/** Units of USDC, rounded up. */
export const amountOf = (priceNanoUsd: bigint): bigint => (priceNanoUsd + unitNanoUsd - 1n) / unitNanoUsd;

export function createQuote(deps: { x402: X402; quotes: Quotes; facilitator: () => Promise<Facilitator> }) {
  const { x402, quotes, facilitator } = deps;
  const { network, asset, payTo } = x402;

  return async function quote(ask: QuoteAsk): Promise<Quoted> {
    const { requestHash, priceNanoUsd, resource, buybackToken, error } = ask;
    if (priceNanoUsd <= 0n) throw new RangeError(`a quote of ${priceNanoUsd}`);
    const { feePayer } = await facilitator();
    // As an id of a payment it is written on command lines: nothing in it looks like an option.
    const memo = randomBase62(24);
    const requirements = {
      scheme: "exact",
      network,
      asset,
      amount: String(amountOf(priceNanoUsd)),
      payTo,
      maxTimeoutSeconds,
      extra: { feePayer, memo, paymentFlow: "upfront" },
    };
    await quotes.open({ _id: memo, requestHash, requirements, ...(buybackToken !== undefined && { buybackToken }) });
    const body: PaymentRequired = {
      x402Version: 2,
      error: error ?? "PAYMENT-SIGNATURE header is required",
      resource: { ...resource },
      accepts: [requirements],
    };
    return { body, header: encodePaymentRequiredHeader(body) };
  };
}
