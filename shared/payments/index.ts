/**
 * Calls that are paid one by one, by x402 (version 2, scheme `exact` on Solana, flow `upfront`), and the buyback of every
 * charge. Owns the collections `quotes` and `buybacks`. Sources: the specification, parts 1 (9), 2 ("Payment-required
 * body") and 5 (7); ARCHITECTURE, section 8; github.com/x402-foundation/x402, specs/schemes/exact/scheme_exact_svm.md.
 *
 * A quote is a document by its memo: open -> settling -> settled | unknown, and back to open where nothing was paid; each
 * change is a compare-and-set. A payment is verified here against its quote before it claims that, whoever settles it: a
 * facilitator elsewhere is trusted to say what it settled, and for nothing else. A settled payment is a credit to an
 * account of its own; the call is then an ordinary one on that account. What nobody knows the end of is decided from the chain alone, by whoever comes next: a caller with the
 * same payment, or `reconcile`. So a process may die anywhere: nothing is taken twice, and nothing taken is lost.
 *
 * What is left on such an account is owed to the payer; for 24 hours the same request may use it. An operator who pays it
 * back earlier freezes the account first, so that no call takes it meanwhile.
 *
 * Accruals are fields of ledger entries. `gather` takes them into batches by token, each exactly once; `execute` hands
 * those over the minimum to an executor.
 *
 * Prices and balances in nano-USD, bigint; amounts on chain in units of USDC, of which 1 USD has 10^6. Throws the service
 * errors that each function names; 503 (`noCapacity`) while MongoDB or the network is away.
 */
import type { Money, Moved } from "#money";
import type { Clock } from "#platform/clock";
import type { Config } from "#platform/config";
import type { Logger } from "#platform/logger";
import type { Mongo } from "#platform/mongo";
import { createBatches } from "./batches.ts";
import { createBuyback } from "./buyback.ts";
import { buybackConfig, x402Config } from "./config.ts";
import type { QuoteAsk, Quoted } from "./quote.ts";
import { createQuotes } from "./quotes.ts";
import type { Reconciled } from "./resolve.ts";
import type { SettleAsk, Settlement } from "./settle.ts";
import {
  createUnusedPayments,
  type Refund,
  type UnusedPayment,
  type UnusedQuery,
  type UnusedTotal,
} from "./unused-payments.ts";
import { createX402 } from "./x402.ts";

export type { Batch, Executed, Gathered } from "./buyback.ts";
export { buybackConfig } from "./config.ts";
export type { BuybackExecutor, DueBatch, Execution, SentTransaction } from "./executor.ts";
export { networkOf } from "./network.ts";
export type { QuoteAsk, Quoted } from "./quote.ts";
export type { Reconciled } from "./resolve.ts";
export { connectRpc, type Rpc } from "./rpc.ts";
export type { SettleAsk, Settlement } from "./settle.ts";
export type { Refund, UnusedPayment, UnusedQuery, UnusedTotal } from "./unused-payments.ts";
export { walletOf } from "./wallet-key.ts";

export interface Payments {
  /** Makes collections and indexes. Any number of processes may do it at once. */
  prepare(): Promise<void>;
  /** Undefined: switched off, no `X402_PAY_TO`. */
  readonly x402: X402 | undefined;
  readonly owed: {
    total(query?: UnusedQuery): Promise<UnusedTotal>;
    /** In the order of their memos, at most `limit`; `after` is the memo of the last one seen. */
    list(page: { readonly limit: number; readonly after?: string | undefined } & UnusedQuery): Promise<UnusedPayment[]>;
    /** Records what was paid back, once for each transaction. 400, 404, 409 for more than is left. */
    refund(memo: string, refund: Refund): Promise<Moved>;
    /** A scheduled job's: removes accounts that are empty a day after they were paid into. Returns how many. */
    tidy(): Promise<number>;
  };
  readonly buyback: ReturnType<typeof createBuyback>;
}

export interface X402 {
  /**
   * Checks that payments can be taken: settler, network, asset, the payee's token account, and whether the fee payer has
   * SOL; then anew every ten minutes. Only for processes that quote. Throws `ConfigError`; what time may mend (a network
   * that is away, no SOL) is asked again by the first who needs it.
   */
  start(): Promise<void>;
  /** What to answer with 402. */
  quote(ask: QuoteAsk): Promise<Quoted>;
  /** Takes the payment, or finds that it was taken. Throws 400 for a header that cannot be decoded, and what `priceNanoUsd` throws. */
  settle(ask: SettleAsk): Promise<Settlement>;
  /** A scheduled job's: decides from the chain what nobody knows the end of. Safe in many processes at once. */
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
    owed: createUnusedPayments({ quotes, money, clock, log }),
    buyback: createBuyback({ config: buybackConfig(config), batches, money, log }),
  };
}
