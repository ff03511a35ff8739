import { type Money, unitNanoUsd } from "#money";
import type { Logger } from "#platform/logger";
import type { Chain, Landed } from "./chain.ts";
import type { Claimed, Quotes } from "./quotes.ts";

export type Resolved = "settled" | "reopened" | "unknown";

export interface Reconciled {
  readonly settled: number;
  readonly reopened: number;
  /** Still unknown: they are looked at again. */
  readonly unknown: number;
}

/** A blockhash is good for 150 blocks. The rest: nodes that are asked, and were asked by the payer, differ. */
const blockhashLife = 150n;
const slack = 32n;
const againMs = 2_000;
const batchSize = 100;

interface Deps {
  readonly quotes: Quotes;
  readonly chain: Chain;
  readonly money: Pick<Money, "payIn">;
  readonly log: Logger;
}

const nanoUsdOf = ({ requirements }: Pick<Claimed, "requirements">): bigint =>
  BigInt(requirements.amount) * unitNanoUsd;

/** Ends what nobody knows the end of, from the chain alone. Any number of processes may do it at once. */
export function createResolve({ quotes, chain, money, log }: Deps) {
  /** The credit first: whoever dies in between leaves a quote that is looked at again, and a credit that counts once. */
  async function settled(quote: Claimed, signature: string): Promise<void> {
    const { _id: memo, messageHash, buybackToken } = quote;
    await money.payIn({ memo, messageHash, nanoUsd: nanoUsdOf(quote), transaction: signature, buybackToken });
    await quotes.settle(quote, signature);
  }

  /** The height comes first: what is not there after it was passed will never be. */
  async function overSince({ blockhash, overAtHeight }: Claimed): Promise<bigint | undefined> {
    if (overAtHeight === undefined || (await chain.height("finalized")) <= overAtHeight) return undefined;
    return chain.overSince(blockhash);
  }

  async function look(quote: Claimed): Promise<Resolved> {
    const over = await overSince(quote);
    const landed = await chain.find(quote, over);
    if (landed && !landed.failed) {
      await settled(quote, landed.signature);
      return "settled";
    }
    if (landed ? landed.finalized : over !== undefined) return reopen(quote, landed);
    const overAtHeight = quote.overAtHeight ?? (await chain.height("processed")) + blockhashLife + slack;
    await quotes.lookAgain(quote, againMs, overAtHeight);
    return "unknown";
  }

  /** The last that is known of the payment here: who asks for it later is told from the log. */
  async function reopen(quote: Claimed, landed: Landed | undefined): Promise<Resolved> {
    if (!(await quotes.reopen(quote))) return "unknown";
    const { _id: memo, payer, signature = landed?.signature } = quote;
    log.warn({ memo, payer, signature }, landed ? "a payment failed on chain" : "a payment never came on chain");
    return "reopened";
  }

  /** Unknown also where the chain cannot be asked. */
  async function resolve(quote: Claimed): Promise<Resolved> {
    try {
      return await look(quote);
    } catch (error) {
      log.warn({ err: error, memo: quote._id }, "how a payment ended is not known yet");
      // Behind those that wait: it may be the only one that cannot be asked for.
      await quotes.lookAgain(quote, againMs).catch(() => undefined);
      return "unknown";
    }
  }

  async function reconcile(): Promise<Reconciled> {
    const counts = { settled: 0, reopened: 0, unknown: 0 };
    for (const quote of await quotes.due(batchSize)) counts[await resolve(quote)] += 1;
    return counts;
  }

  return { settled, resolve, reconcile };
}
