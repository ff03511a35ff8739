import type { mongo } from "mongoose";
import { conflict, notFound } from "#errors";
import type { Clock } from "#platform/clock";
import { answered } from "#platform/mongo";
import { type Account, type Accounts, type Page, type StoredAccount, toAccount } from "./accounts.ts";
import type { createMovements, Movement } from "./movements.ts";

/** A settled payment: it opens an account of its own and is its credit. */
export interface Payment {
  /** Names the account. */
  readonly memo: string;
  /** The hash of the transaction's message: the same payment never counts twice. */
  readonly messageHash: string;
  readonly nanoUsd: bigint;
  /** The signature on chain. */
  readonly transaction: string;
  readonly buybackToken?: string | undefined;
}

/** What was paid back to a payer on chain. */
export interface Payout {
  readonly nanoUsd: bigint;
  readonly transaction: string;
  readonly reason?: string | undefined;
}

const prefix = "x402:";
/** The range of the ids with the prefix. */
const ids = { $gte: prefix, $lt: "x402;" };
/** One unit of USDC, which has six decimals: the least that can be paid on chain. */
export const unitNanoUsd = 1_000n;

export const paymentAccount = (memo: string): string => `${prefix}${memo}`;
export const isPaymentAccount = (id: string): boolean => id.startsWith(prefix);

export function createPaymentAccounts(deps: {
  accounts: Accounts;
  record: ReturnType<typeof createMovements>["record"];
  clock: Clock;
}) {
  const { accounts, record, clock } = deps;
  const { collection } = accounts;

  /** Opens the account of a payment with its credit, once. 409 if the same payment was credited to another. */
  async function creditPayment(payment: Payment): Promise<Movement> {
    const { memo, messageHash, nanoUsd, transaction, buybackToken } = payment;
    const account = paymentAccount(memo);
    const opened = {
      name: account,
      tier: "standard" as const,
      frozen: false,
      held: 0n,
      openHolds: 0,
      holds: {},
      createdAt: new Date(clock.now()),
      ...(buybackToken !== undefined && { buybackToken }),
    };
    const movement = await record({ _id: messageHash, kind: "credit", account, amount: nanoUsd, transaction }, opened);
    if (movement.entry.account !== account) throw conflict("This payment was made for another request.");
    return movement;
  }

  /** Records what was paid back on chain, once for each transaction. 404, 409 for more than is available. */
  async function recordPayout(account: string, { nanoUsd, transaction, reason }: Payout): Promise<Movement> {
    if (!isPaymentAccount(account)) throw notFound("payment");
    const movement = await record({
      _id: `payout:${account}:${transaction}`,
      kind: "payout",
      account,
      amount: -nanoUsd,
      transaction,
      ...(reason !== undefined && { reason }),
    });
    if (movement.entry.amountNanoUsd !== -nanoUsd) throw conflict("This transaction was recorded with another amount.");
    return movement;
  }

  const unused = (openedBefore: Date) => ({
    _id: ids,
    available: { $gte: unitNanoUsd },
    createdAt: { $lt: openedBefore },
  });

  /** What is available on payment accounts, without amounts too small to be paid back. */
  async function sumUnused(openedBefore: Date) {
    const sums = collection.aggregate<{ nanoUsd: bigint; payments: number }>([
      { $match: unused(openedBefore) },
      { $group: { _id: null, nanoUsd: { $sum: "$available" }, payments: { $sum: 1 } } },
    ]);
    const [sum] = await answered(sums.toArray());
    return { nanoUsd: sum?.nanoUsd ?? 0n, payments: Number(sum?.payments ?? 0) };
  }

  async function list(filter: mongo.Filter<StoredAccount>, limit: number): Promise<Account[]> {
    const found = collection.find(filter, { projection: { holds: 0 }, sort: { _id: 1 }, limit });
    return (await answered(found.toArray())).map(toAccount);
  }

  /** The same accounts, in the order of their ids. */
  const unusedAccounts = (openedBefore: Date, { limit, after }: Page): Promise<Account[]> =>
    list({ ...unused(openedBefore), ...(after !== undefined && { _id: { ...ids, $gt: after } }) }, limit);

  /** Payment accounts with nothing to pay back and no open hold. */
  const spentAccounts = (openedBefore: Date, limit: number): Promise<Account[]> =>
    list({ ...unused(openedBefore), available: { $lt: unitNanoUsd }, held: 0n, openHolds: 0 }, limit);

  /** Writes off the rest of such an account and removes it; its entries stay. False: it is in use. */
  async function removeSpentAccount({ id, availableNanoUsd }: Account): Promise<boolean> {
    if (availableNanoUsd > 0n)
      await record({
        _id: `writeoff:${id}`,
        kind: "adjustment",
        account: id,
        amount: -availableNanoUsd,
        reason: "less than one unit of the token",
      });
    const empty = { _id: id, available: 0n, held: 0n, openHolds: 0 };
    const { deletedCount } = await answered(collection.deleteOne(empty));
    return deletedCount === 1;
  }

  return { creditPayment, recordPayout, sumUnused, unusedAccounts, spentAccounts, removeSpentAccount };
}
