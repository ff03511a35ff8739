import { invalidValue, notFound } from "#errors";
import { type Account, type Money, type Movement, type Payout, paymentAccount, unitNanoUsd } from "#money";
import type { Page } from "#platform/mongo/collection";
import type { Uses } from "#platform/uses";
import { isSignature } from "./config.ts";
import { paymentLifetimeMs } from "./payment.ts";
import { amountNanoUsd, type Quote, type Quotes } from "./quotes.ts";

/** Longer than any call that began within a payment's lifetime. */
const expiredMs = paymentLifetimeMs + 2 * 3_600_000;
const batchSize = 200;

interface Query {
  readonly expiredOnly?: boolean | undefined;
}

const memoOf = (account: string) => account.slice(paymentAccount("").length);

export type UnusedPayment = ReturnType<typeof toUnusedPayment>;

/** A payment whose account has a balance that can be paid back. */
const toUnusedPayment = (account: Account, quote: Quote | undefined) => {
  const paidAt = quote?.settledAt ?? account.createdAt;
  return {
    memo: memoOf(account.id),
    account: account.id,
    /** The wallet that paid. */
    payer: quote?.payer ?? "",
    transaction: quote?.signature ?? "",
    paidNanoUsd: quote ? amountNanoUsd(quote) : 0n,
    unusedNanoUsd: account.availableNanoUsd - (account.availableNanoUsd % unitNanoUsd),
    paidAt,
    /** The same request may still use the balance until this time. */
    usableUntil: new Date(paidAt.getTime() + paymentLifetimeMs),
  };
};

export function createUnusedPayments(deps: Uses<"clock" | "log"> & { quotes: Quotes; money: Money }) {
  const { quotes, money, clock, log } = deps;

  /** An expired payment can no longer be used by its payer. */
  const openedBefore = (expiredOnly = false) => new Date(clock.now() - (expiredOnly ? expiredMs : 0) + 1);

  const total = ({ expiredOnly }: Query = {}) => money.sumUnused(openedBefore(expiredOnly));

  /** Lists payments ordered by memo; `after` is the memo of the last one seen. */
  async function list({ limit, after, expiredOnly }: Page & Query): Promise<UnusedPayment[]> {
    const page = { limit, after: after === undefined ? undefined : paymentAccount(after) };
    const accounts = await money.unusedAccounts(openedBefore(expiredOnly), page);
    const paid = await quotes.findAll(accounts.map(({ id }) => memoOf(id)));
    return accounts.map((account) => toUnusedPayment(account, paid.get(memoOf(account.id))));
  }

  /** Records what was paid back, once for each transaction. Throws 400, 404, and 409 for more than is unused. */
  async function refund(memo: string, { nanoUsd, transaction, reason }: Payout): Promise<Movement> {
    if (!isSignature(transaction)) throw invalidValue("transaction", "transaction must be a signature on Solana.");
    if (nanoUsd <= 0n || nanoUsd % unitNanoUsd !== 0n)
      throw invalidValue("amount_usd", "amount_usd must be positive, with at most six decimals.");
    if (!(await money.account(paymentAccount(memo)))) throw notFound("payment");
    const movement = await money.recordPayout(paymentAccount(memo), { nanoUsd, transaction, reason });
    // Balances do not depend on this. It gives a repeated request a new quote.
    await quotes.markPaidBack(memo);
    return movement;
  }

  /**
   * Removes accounts of expired payments that have nothing to pay back. The quote is removed first, so that after a
   * crash in between the account is found again.
   */
  async function removeSpent(): Promise<number> {
    let removed = 0;
    for (let after: Account | undefined; ; ) {
      const spent = await money.spentAccounts(openedBefore(true), { limit: batchSize, after });
      for (const account of spent) {
        await quotes.remove(memoOf(account.id));
        if (await money.removeSpentAccount(account)) removed += 1;
        else log.warn({ account: account.id }, "the account of an expired payment is in use");
      }
      if (spent.length < batchSize) return removed;
      after = spent.at(-1);
    }
  }

  return { total, list, refund, removeSpent };
}
