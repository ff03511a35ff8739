import { invalidValue, notFound } from "#errors";
import { type Account, type Money, type Moved, type Page, paymentAccount, unitNanoUsd } from "#money";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { isSignature } from "./network.ts";
import { goodMs } from "./payment-fault.ts";
import type { Quote, Quotes } from "./quotes.ts";

/** A payment of which something is left. */
export interface UnusedPayment {
  readonly memo: string;
  readonly account: string;
  /** The wallet that paid. */
  readonly payer: string;
  /** The payment's signature. */
  readonly transaction: string;
  readonly paidNanoUsd: bigint;
  readonly owedNanoUsd: bigint;
  readonly paidAt: Date;
  /** Until then the same request may still use it. */
  readonly goodUntil: Date;
}

export interface UnusedTotal {
  readonly nanoUsd: bigint;
  readonly payments: number;
}

export interface UnusedQuery {
  /** Only what can be used no more. */
  readonly over?: boolean | undefined;
}

export interface Refund {
  readonly nanoUsd: bigint;
  /** The signature of the transaction that paid it back. */
  readonly transaction: string;
  readonly reason?: string | undefined;
}

/** A call that began in the last moment of its payment ends before. */
const usedMs = goodMs + 2 * 3_600_000;
const batchSize = 200;

const memoOf = (account: string) => account.slice(paymentAccount("").length);

export function createUnusedPayments(deps: { quotes: Quotes; money: Money; clock: Clock; log: Logger }) {
  const { quotes, money, clock, log } = deps;

  /** Accounts opened before. */
  const before = ({ over = false }: UnusedQuery) => new Date(clock.now() - (over ? usedMs : 0) + 1);

  const show = (account: Account, quote: Quote | undefined): UnusedPayment => {
    const paidAt = quote?.settledAt ?? account.createdAt;
    return {
      memo: memoOf(account.id),
      account: account.id,
      payer: quote?.payer ?? "",
      transaction: quote?.signature ?? "",
      paidNanoUsd: BigInt(quote?.requirements.amount ?? 0) * unitNanoUsd,
      owedNanoUsd: account.availableNanoUsd - (account.availableNanoUsd % unitNanoUsd),
      paidAt,
      goodUntil: new Date(paidAt.getTime() + goodMs),
    };
  };

  async function total(query: UnusedQuery = {}): Promise<UnusedTotal> {
    const { nanoUsd, accounts } = await money.owed(before(query));
    return { nanoUsd, payments: accounts };
  }

  /** In the order of their memos; `after` is the memo of the last one seen. */
  async function list({ limit, after, ...query }: Page & UnusedQuery): Promise<UnusedPayment[]> {
    const page = { limit, after: after === undefined ? undefined : paymentAccount(after) };
    const accounts = await money.owedAccounts(before(query), page);
    const paid = await quotes.all(accounts.map(({ id }) => memoOf(id)));
    return accounts.map((account) => show(account, paid.get(memoOf(account.id))));
  }

  async function refund(memo: string, { nanoUsd, transaction, reason }: Refund): Promise<Moved> {
    if (!isSignature(transaction)) throw invalidValue("transaction", "transaction must be a signature on Solana.");
    if (nanoUsd <= 0n || nanoUsd % unitNanoUsd !== 0n)
      throw invalidValue("amount_usd", "amount_usd must be positive, with at most six decimals.");
    if (!(await money.account(paymentAccount(memo)))) throw notFound("payment");
    const moved = await money.payOut(paymentAccount(memo), { nanoUsd, transaction, reason });
    // Exact without it too, for nothing is left to spend; with it a repeated request is told to pay anew.
    await quotes.payBack(memo);
    return moved;
  }

  /** Removes what is spent and can be used no more: the quote first, for whoever finds the account comes again. */
  async function tidy(): Promise<number> {
    let removed = 0;
    for (;;) {
      const spent = await money.spentAccounts(before({ over: true }), batchSize);
      let gone = 0;
      for (const account of spent) {
        await quotes.remove(memoOf(account.id));
        if (await money.removeAccount(account)) gone += 1;
        else log.warn({ account: account.id }, "a payment's account is in use after its time");
      }
      removed += gone;
      if (spent.length < batchSize || gone === 0) return removed;
    }
  }

  return { total, list, refund, tidy };
}
