import { invalidValue, notFound } from "#errors";
import { type Account, type Money, type Movement, type Page, type Payout, paymentAccount, unitNanoUsd } from "#money";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { isSignature } from "./config.ts";
import { paymentLifetimeMs } from "./payment.ts";
import { amountNanoUsd, type Quote, type Quotes } from "./quotes.ts";

/** A payment whose account has a balance that can be paid back. */
export interface UnusedPayment {
  readonly memo: string;
  readonly account: string;
  /** The wallet that paid. */
  readonly payer: string;
  /** The payment's signature. */
  readonly transaction: string;
  readonly paidNanoUsd: bigint;
  readonly unusedNanoUsd: bigint;
  readonly paidAt: Date;
  /** Until then the same request may still use it. */
  readonly usableUntil: Date;
}

export interface UnusedQuery {
  /** Only payments that their payer can no longer use. */
  readonly expiredOnly?: boolean | undefined;
}

/** Longer than any call that began within a payment's lifetime. */
const expiredMs = paymentLifetimeMs + 2 * 3_600_000;
const batchSize = 200;

const memoOf = (account: string) => account.slice(paymentAccount("").length);

export function createUnusedPayments(deps: { quotes: Quotes; money: Money; clock: Clock; log: Logger }) {
  const { quotes, money, clock, log } = deps;

  const openedBefore = ({ expiredOnly = false }: UnusedQuery) =>
    new Date(clock.now() - (expiredOnly ? expiredMs : 0) + 1);

  const show = (account: Account, quote: Quote | undefined): UnusedPayment => {
    const paidAt = quote?.settledAt ?? account.createdAt;
    return {
      memo: memoOf(account.id),
      account: account.id,
      payer: quote?.payer ?? "",
      transaction: quote?.signature ?? "",
      paidNanoUsd: quote ? amountNanoUsd(quote) : 0n,
      unusedNanoUsd: account.availableNanoUsd - (account.availableNanoUsd % unitNanoUsd),
      paidAt,
      usableUntil: new Date(paidAt.getTime() + paymentLifetimeMs),
    };
  };

  async function total(query: UnusedQuery = {}): Promise<{ nanoUsd: bigint; payments: number }> {
    const { nanoUsd, accounts } = await money.sumUnused(openedBefore(query));
    return { nanoUsd, payments: accounts };
  }

  async function list({ limit, after, ...query }: Page & UnusedQuery): Promise<UnusedPayment[]> {
    const page = { limit, after: after === undefined ? undefined : paymentAccount(after) };
    const accounts = await money.unusedAccounts(openedBefore(query), page);
    const paid = await quotes.findAll(accounts.map(({ id }) => memoOf(id)));
    return accounts.map((account) => show(account, paid.get(memoOf(account.id))));
  }

  async function refund(memo: string, { nanoUsd, transaction, reason }: Payout): Promise<Movement> {
    if (!isSignature(transaction)) throw invalidValue("transaction", "transaction must be a signature on Solana.");
    if (nanoUsd <= 0n || nanoUsd % unitNanoUsd !== 0n)
      throw invalidValue("amount_usd", "amount_usd must be positive, with at most six decimals.");
    if (!(await money.account(paymentAccount(memo)))) throw notFound("payment");
    const movement = await money.recordPayout(paymentAccount(memo), { nanoUsd, transaction, reason });
    // Balances do not depend on this: it gives a repeated request a new quote.
    await quotes.markPaidBack(memo);
    return movement;
  }

  /** The quote is removed first: after a crash in between, the account is found again. */
  async function removeSpent(): Promise<number> {
    let removed = 0;
    for (;;) {
      const spent = await money.spentAccounts(openedBefore({ expiredOnly: true }), batchSize);
      let removedNow = 0;
      for (const account of spent) {
        await quotes.remove(memoOf(account.id));
        if (await money.removeSpentAccount(account)) removedNow += 1;
        else log.warn({ account: account.id }, "the account of an expired payment is in use");
      }
      removed += removedNow;
      if (spent.length < batchSize || removedNow === 0) return removed;
    }
  }

  return { total, list, refund, removeSpent };
}
