/**
 * Calls that are paid individually by x402 (version 2, scheme `exact` on Solana, flow `upfront`), top-ups by Solana Pay,
 * and the buyback of every charge. Owns the collections `quotes`, `buybacks`, `topups` and `topupPayments`. Sources:
 * docs/api/inference.md; the specification of the scheme, github.com/x402-foundation/x402,
 * specs/schemes/exact/scheme_exact_svm.md; docs.solanapay.com/spec.
 *
 * A quote has its memo as id: open -> settling -> settled | unknown, and back to open where nothing was paid. A payment
 * is verified here before it claims its quote, even when a remote facilitator settles it (docs/adr/0009). A settled
 * payment is a credit to its own account (docs/adr/0008). An unknown outcome is resolved from the chain alone, by the
 * next request with the same payment or by `reconcile`.
 *
 * The part of a payment that calls do not use can be paid back to its payer; for 24 hours the same request may use it.
 * An operator who pays it back earlier freezes the account first, so that no call uses it at the same time.
 *
 * A top-up is a transfer request with a reference created for it, by which a job finds the payment on chain.
 *
 * Prices and balances are nano-USD, bigint; amounts on chain are units of USDC, 10^6 to 1 USD. Throws the service
 * errors that each function names, and 503 (`noCapacity`) while MongoDB or the network is unavailable.
 */
import { encodePaymentRequiredHeader } from "@x402/core/http";
import type { PaymentRequired } from "@x402/core/types";
import { noCapacity } from "#errors";
import type { Money } from "#money";
import type { Config } from "#platform/config";
import { ConfigError, configError } from "#platform/config-error";
import type { Page } from "#platform/mongo/collection";
import type { Uses } from "#platform/uses";
import { createBatches } from "./batches.ts";
import { createBuyback } from "./buyback.ts";
import { connectRpc, createChain } from "./chain.ts";
import { buybackConfig, type SolanaConfig, settlerOf, solanaConfig } from "./config.ts";
import { type Facilitator, ownFacilitator, remoteFacilitator } from "./facilitators.ts";
import { createQuotes, newMemo, type Quotes, unitsOf } from "./quotes.ts";
import { createSettle } from "./settle.ts";
import { createTopupChain } from "./topup-chain.ts";
import { createTopupPoller } from "./topup-poller.ts";
import { createTopups } from "./topups.ts";
import { createUnusedPayments } from "./unused-payments.ts";

export type { Execution, SentTransaction } from "./batches.ts";
export type { Batch, BuybackExecutor, DueBatch } from "./buyback.ts";
export { connectRpc, type Rpc } from "./chain.ts";
export { buybackConfig, networkOf, settlerOf, solanaConfig, walletOf } from "./config.ts";
export { paymentsSchema } from "./migrations.ts";
export type { Topup } from "./topups.ts";

export type Payments = ReturnType<typeof createPayments>;
export type X402 = ReturnType<typeof createX402>;

/** Throws `ConfigError` for settings that contradict one another. */
export function createPayments(deps: Uses<"mongo" | "clock" | "log"> & { config: Config; money: Money }) {
  const { config, mongo, money, clock, log } = deps;
  const solana = solanaConfig(config);
  const quotes = createQuotes({ mongo, quoteMs: config.X402_QUOTE_SECONDS * 1_000, clock });
  const batches = createBatches({ mongo, clock });
  return {
    /** Requires `X402_PAY_TO`. */
    x402: solana && createX402({ solana, quotes, money, clock, log }),
    /** Requires `X402_PAY_TO`. */
    topups: solana && createTopUps({ solana, mongo, money, clock, log }),
    unused: createUnusedPayments({ quotes, money, clock, log }),
    countBuybacks: batches.countByState,
    buyback: createBuyback({ config: buybackConfig(config), batches, money, log }),
  };
}

function createTopUps(deps: Uses<"mongo" | "clock" | "log"> & { solana: SolanaConfig; money: Money }) {
  const topups = createTopups(deps);
  const chain = createTopupChain(connectRpc(deps.solana.rpcUrl));
  return {
    open: (account: string, nanoUsd: bigint) => topups.open(account, nanoUsd),
    list: (account: string, page: Page) => topups.list(account, page),
    find: (account: string, id: string) => topups.find(account, id),
    creditArrived: createTopupPoller({ ...deps, topups, chain }),
  };
}

/** A request that is paid individually. */
export interface PaidRequest {
  readonly requestHash: string;
  /** The maximum cost of the request, by list price. Positive. */
  readonly priceNanoUsd: bigint;
  readonly resource: { readonly url: string; readonly description: string; readonly mimeType: string };
  /** Must be accepted by `buyback.assertEligible`. */
  readonly buybackToken?: string | undefined;
}

/** Repeated, because keys are changed, accounts closed, and SOL runs out. */
const checkEveryMs = 600_000;
/** A payment may be sent this long after signing. A blockhash lives about as long. */
const maxTimeoutSeconds = 60;

function createX402(deps: Uses<"clock" | "log"> & { solana: SolanaConfig; quotes: Quotes; money: Money }) {
  const { solana, quotes, money, clock, log } = deps;
  const { network, asset, payTo } = solana;
  const rpc = connectRpc(solana.rpcUrl);
  const chain = createChain(rpc, solana);
  let checked: { readonly facilitator: Promise<Facilitator>; readonly until: number } | undefined;

  async function check(): Promise<Facilitator> {
    const { feePayer, facilitatorUrl } = await settlerOf(solana);
    const facilitator = feePayer
      ? await ownFacilitator(solana, feePayer, rpc, log)
      : await remoteFacilitator(solana, facilitatorUrl);
    const fault = await chain.configFault();
    if (fault !== undefined) throw configError(fault);
    return facilitator;
  }

  /** Returns the facilitator once payments are known to arrive. Throws 503 until then. */
  function facilitator(): Promise<Facilitator> {
    if (checked && clock.now() < checked.until) return checked.facilitator;
    const checking = check().catch((cause: unknown) => {
      checked = undefined;
      throw noCapacity("Payments cannot be accepted right now.", 5, cause);
    });
    checked = { facilitator: checking, until: clock.now() + checkEveryMs };
    return checking;
  }

  /**
   * Checks that payments can be taken: facilitator, network, asset, the payee's token account, and whether the fee
   * payer has SOL. Needed by processes that quote. Throws `ConfigError` for faults that only the operator can fix;
   * transient faults (such as an unavailable network) are checked again by the first request, and everything every ten
   * minutes.
   */
  async function start(): Promise<void> {
    await facilitator().catch((error: Error) => {
      if (error.cause instanceof ConfigError) throw error.cause;
      log.warn({ err: error }, "payments cannot be accepted yet");
    });
  }

  /** Returns the body and headers of a 402. `PAYMENT-REQUIRED` repeats the body for x402 clients. */
  async function quote(request: PaidRequest, error = "PAYMENT-SIGNATURE header is required") {
    const { requestHash, priceNanoUsd, resource, buybackToken } = request;
    if (priceNanoUsd <= 0n) throw new RangeError(`a quote of ${priceNanoUsd}`);
    const { feePayer } = await facilitator();
    const memo = newMemo();
    const requirements = {
      scheme: "exact",
      network,
      asset,
      amount: String(unitsOf(priceNanoUsd)),
      payTo,
      maxTimeoutSeconds,
      extra: { feePayer, memo, paymentFlow: "upfront" },
    };
    await quotes.open({ _id: memo, requestHash, requirements, ...(buybackToken !== undefined && { buybackToken }) });
    const body: PaymentRequired = { x402Version: 2, error, resource: { ...resource }, accepts: [requirements] };
    return { headers: { "PAYMENT-REQUIRED": encodePaymentRequiredHeader(body), "cache-control": "no-store" }, body };
  }

  const { find, settle, reconcile } = createSettle({ solana, quotes, chain, facilitator, money, clock, log });
  return { start, quote, find, settle, reconcile };
}
