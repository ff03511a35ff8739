import type { Money } from "#money";
import type { Logger } from "#platform/logger";
import type { Chain, Landed } from "./chain.ts";
import { amountNanoUsd, type Claimed, type Quotes } from "./quotes.ts";

type Resolved = "settled" | "reopened" | "unknown";

export interface Reconciled {
  readonly settled: number;
  readonly reopened: number;
  /** Looked up again later. */
  readonly unknown: number;
}

/** A blockhash is valid for 150 blocks. The slack is for nodes that differ in height. */
const blockhashLife = 150n;
const slack = 32n;
const retryDelayMs = 2_000;
const batchSize = 100;

interface Deps {
  readonly quotes: Quotes;
  readonly chain: Chain;
  readonly money: Pick<Money, "creditPayment">;
  readonly log: Logger;
}

/** Decides payments of unknown outcome from the chain alone. Any number of processes may do it at once. */
export function createReconcile({ quotes, chain, money, log }: Deps) {
  /** The credit is written first: after a crash in between, the quote is looked up again, and the credit counts once. */
  async function creditPayment(quote: Claimed, signature: string): Promise<void> {
    const { _id: memo, messageHash, buybackToken } = quote;
    const nanoUsd = amountNanoUsd(quote);
    await money.creditPayment({ memo, messageHash, nanoUsd, transaction: signature, buybackToken });
    await quotes.markSettled(quote, signature);
  }

  /** The height is read first: a transaction that is not found after it was passed can never land. */
  async function expiredSince({ blockhash, overAtHeight }: Claimed): Promise<bigint | undefined> {
    if (overAtHeight === undefined || (await chain.height("finalized")) <= overAtHeight) return undefined;
    return chain.expiredSince(blockhash);
  }

  async function lookUp(quote: Claimed): Promise<Resolved> {
    const expired = await expiredSince(quote);
    const landed = await chain.find(quote, expired);
    if (landed && !landed.failed) {
      await creditPayment(quote, landed.signature);
      return "settled";
    }
    if (landed ? landed.finalized : expired !== undefined) return reopen(quote, landed);
    const overAtHeight = quote.overAtHeight ?? (await chain.height("processed")) + blockhashLife + slack;
    await quotes.postpone(quote, retryDelayMs, overAtHeight);
    return "unknown";
  }

  /** Afterwards the log is the only record of this payment. */
  async function reopen(quote: Claimed, landed: Landed | undefined): Promise<Resolved> {
    if (!(await quotes.reopen(quote))) return "unknown";
    const { _id: memo, payer, signature = landed?.signature } = quote;
    log.warn({ memo, payer, signature }, landed ? "a payment failed on chain" : "a payment never came on chain");
    return "reopened";
  }

  /** Also `unknown` while the chain is unavailable. */
  async function resolve(quote: Claimed): Promise<Resolved> {
    try {
      return await lookUp(quote);
    } catch (error) {
      log.warn({ err: error, memo: quote._id }, "the outcome of a payment is not known yet");
      // It goes behind the others that are due: it may be the only one that fails.
      await quotes.postpone(quote, retryDelayMs).catch(() => undefined);
      return "unknown";
    }
  }

  async function reconcile(): Promise<Reconciled> {
    const counts = { settled: 0, reopened: 0, unknown: 0 };
    for (const quote of await quotes.due(batchSize)) counts[await resolve(quote)] += 1;
    return counts;
  }

  return { creditPayment, resolve, reconcile };
}
