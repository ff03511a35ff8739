/**
 * What a buyback is executed by. `shared/payments` keeps the batches and says which is due; an executor turns the USDC of
 * one into its token, and knows nothing of the ledger.
 */
export interface BuybackExecutor {
  /** Stands in the batch, and says how it was executed. */
  readonly name: string;
  /**
   * Executes a batch, or says how far it came. Called again, in any process, until the outcome is final; so a transaction
   * is sent only after `remember` resolved, and what `batch.sent` tells is looked for on chain before anything new is made.
   * `remember` rejects if the batch is another process's by now: then nothing may be sent. `execute` rejects where nobody
   * can say more now: the batch comes again later.
   */
  execute(batch: DueBatch, remember: (sent: SentTransaction) => Promise<void>, signal: AbortSignal): Promise<Execution>;
}

export interface DueBatch {
  /** Unique, and the same at every call: 1 to 64 of A-Za-z0-9_. */
  readonly id: string;
  /** The mint to buy: base58, 32 bytes. */
  readonly token: string;
  /** What is to be spent: 1 USD = 10^9. Always positive. */
  readonly nanoUsd: bigint;
  /** The last one that was remembered. */
  readonly sent?: SentTransaction;
}

export interface SentTransaction {
  readonly signature: string;
  /** Base64, signed: it may be sent again as it is. */
  readonly transaction: string;
  /** After this height, at finalized commitment, it can land no more. */
  readonly lastValidBlockHeight: bigint;
}

export type Execution =
  /** Written down only: the operator buys. */
  | { readonly kind: "recorded" }
  /** It stands on chain. Amounts are base units. */
  | { readonly kind: "bought"; readonly signature: string; readonly spent: bigint; readonly received: bigint }
  /** Sent, and not decided yet. */
  | { readonly kind: "pending" };
