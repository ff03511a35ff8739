/**
 * Calls that are paid one by one, by x402 (version 2, scheme `exact` on Solana, flow `upfront`), and the buyback of every
 * charge. Owns the collections `quotes` and `buybacks`. Sources: docs/api/inference.md; the specification of the scheme,
 * github.com/x402-foundation/x402, specs/schemes/exact/scheme_exact_svm.md.
 *
 * A quote is a document with its memo as id: open -> settling -> settled | unknown, and back to open where nothing was
 * paid; each change is a compare-and-set. A payment is verified here against its quote before it claims the quote, also
 * when a remote facilitator settles it: that one is trusted only when it reports that a payment was settled. A settled
 * payment is a credit to an account of its own, and the call is then an ordinary one on that account. A payment of unknown
 * outcome is decided from the chain alone, by the next request with the same payment or by `reconcile`. So a process may
 * die at any point: nothing is taken twice, and nothing that was taken is lost.
 *
 * What calls do not use of a payment can be paid back to its payer; for 24 hours the same request may use it. An operator
 * who pays it back earlier freezes the account first, so that no call uses it meanwhile.
 *
 * Accruals are fields of ledger entries. `gather` adds them to batches by token, each exactly once; `execute` passes
 * batches over the minimum to an executor.
 *
 * Prices and balances are nano-USD, bigint; amounts on chain are units of USDC, 10^6 to 1 USD. Throws the service errors
 * that each function names, and 503 (`noCapacity`) while MongoDB or the network is unavailable.
 */
import type { Money, Movement, Page, Payout } from "#money";
import type { Clock } from "#platform/clock";
import type { Config } from "#platform/config";
import type { Logger } from "#platform/logger";
import type { Mongo } from "#platform/mongo";
import { createBatches } from "./batches.ts";
import { createBuyback } from "./buyback.ts";
import { buybackConfig, x402Config } from "./config.ts";
import { createQuotes } from "./quotes.ts";
import type { Reconciled } from "./reconcile.ts";
import type { Pending, SentPayment, Settled, Unpaid } from "./settle.ts";
import { createUnusedPayments, type UnusedPayment, type UnusedQuery } from "./unused-payments.ts";
import { createX402, type PaidRequest, type PaymentDecision } from "./x402.ts";

export type { Execution, SentTransaction } from "./batches.ts";
export type { Batch, BuybackExecutor, DueBatch } from "./buyback.ts";
export { connectRpc, type Rpc } from "./chain.ts";
export { buybackConfig, networkOf, walletOf } from "./config.ts";
export type { Reconciled } from "./reconcile.ts";
export type { Pending, SentPayment, Settled, Unpaid } from "./settle.ts";
export type { UnusedPayment, UnusedQuery } from "./unused-payments.ts";
export type { PaidRequest, PaymentDecision } from "./x402.ts";

export interface Payments {
  /** Makes collections and indexes. Any number of processes may do it at once. */
  prepare(): Promise<void>;
  /** Undefined: switched off, no `X402_PAY_TO`. */
  readonly x402: X402 | undefined;
  readonly unused: {
    total(query?: UnusedQuery): Promise<{ readonly nanoUsd: bigint; readonly payments: number }>;
    /** In the order of their memos; `after` is the memo of the last one seen. */
    list(page: Page & UnusedQuery): Promise<UnusedPayment[]>;
    /** Records what was paid back, once for each transaction. 400, 404, 409 for more than is unused. */
    refund(memo: string, payout: Payout): Promise<Movement>;
    /** Removes accounts of expired payments that have nothing to pay back. Returns how many. */
    removeSpent(): Promise<number>;
  };
  readonly buyback: ReturnType<typeof createBuyback>;
}

export interface X402 {
  /**
   * Checks that payments can be taken: facilitator, network, asset, the payee's token account, and whether the fee payer
   * has SOL. For processes that quote. Throws `ConfigError` for what only the operator can change; faults that may pass (a
   * network that is unavailable) are checked again by the first request, and everything every ten minutes.
   */
  start(): Promise<void>;
  /**
   * Looks up the payment of a request, and waits while another process settles it. Takes nothing, so that a request with a
   * settled payment needs neither a check nor a price. Throws 400 for a header that cannot be decoded.
   */
  find(payment: SentPayment): Promise<Settled | Pending | Unpaid>;
  /**
   * Settles what `find` found open, or else answers with a quote. Call it only for requests that would be admitted. Throws
   * 503 if nothing could be settled and nothing was taken.
   */
  decide(unpaid: Unpaid | undefined, request: PaidRequest): Promise<PaymentDecision>;
  /** Decides payments of unknown outcome from the chain. Safe in many processes at once. */
  reconcile(): Promise<Reconciled>;
}

/** Throws `ConfigError` for settings that contradict one another. */
export function createPayments(deps: {
  config: Config;
  mongo: Mongo;
  money: Money;
  clock: Clock;
  log: Logger;
}): Payments {
  const { config, mongo, money, clock, log } = deps;
  const x402 = x402Config(config);
  const quotes = createQuotes({ mongo, quoteMs: config.X402_QUOTE_SECONDS * 1_000, clock });
  const batches = createBatches({ mongo, clock });
  return {
    async prepare() {
      await Promise.all([quotes.prepare(), batches.prepare()]);
    },
    x402: x402 && createX402({ x402, quotes, money, clock, log }),
    unused: createUnusedPayments({ quotes, money, clock, log }),
    buyback: createBuyback({ config: buybackConfig(config), batches, money, log }),
  };
}
