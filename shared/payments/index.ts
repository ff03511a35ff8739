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
import type { Money } from "#money";
import type { Clock } from "#platform/clock";
import type { Config } from "#platform/config";
import type { Logger } from "#platform/logger";
import type { Mongo } from "#platform/mongo";
import { createBatches } from "./batches.ts";
import { createBuyback } from "./buyback.ts";
import { buybackConfig, x402Config } from "./config.ts";
import { createQuotes } from "./quotes.ts";
import { createUnusedPayments } from "./unused-payments.ts";
import { createX402 } from "./x402.ts";

export type { Execution, SentTransaction } from "./batches.ts";
export type { Batch, BuybackExecutor, DueBatch } from "./buyback.ts";
export { connectRpc, type Rpc } from "./chain.ts";
export { buybackConfig, networkOf, walletOf } from "./config.ts";
export type { UnusedPayment } from "./unused-payments.ts";
export type { PaidRequest } from "./x402.ts";

export type Payments = ReturnType<typeof createPayments>;
export type X402 = ReturnType<typeof createX402>;

/** Throws `ConfigError` for settings that contradict one another. */
export function createPayments(deps: { config: Config; mongo: Mongo; money: Money; clock: Clock; log: Logger }) {
  const { config, mongo, money, clock, log } = deps;
  const x402 = x402Config(config);
  const quotes = createQuotes({ mongo, quoteMs: config.X402_QUOTE_SECONDS * 1_000, clock });
  const batches = createBatches({ mongo, clock });
  return {
    /** Makes collections and indexes. Any number of processes may do it at once. */
    async prepare() {
      await Promise.all([quotes.prepare(), batches.prepare()]);
    },
    /** Undefined: switched off, no `X402_PAY_TO`. */
    x402: x402 && createX402({ x402, quotes, money, clock, log }),
    unused: createUnusedPayments({ quotes, money, clock, log }),
    buyback: createBuyback({ config: buybackConfig(config), batches, money, log }),
  };
}
