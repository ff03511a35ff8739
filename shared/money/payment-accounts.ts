import type { Collection } from "mongoose";
import { conflict, notFound } from "#errors";
import type { Clock } from "#platform/clock";
import { answered } from "#platform/mongo";
import { type Account, type Accounts, type Page, type StoredAccount, toAccount } from "./accounts.ts";
import type { createMove, Moved } from "./move.ts";

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

/** What went back to a payer on chain. */
export interface Payout {
  readonly nanoUsd: bigint;
  readonly transaction: string;
  readonly reason?: string | undefined;
}

export interface Owed {
  readonly nanoUsd: bigint;
  readonly accounts: number;
}

const prefix = "x402:";
/** Up to here, and no further, go the ids with the prefix. */
const ids = { $gte: prefix, $lt: "x402;" };
/** Of one unit of USDC, which has six decimals: the least that can be paid on chain. */
export const unitNanoUsd = 1_000n;

export const paymentAccount = (memo: string): string => `${prefix}${memo}`;
export const isPaymentAccount = (id: string): boolean => id.startsWith(prefix);

export function createPaymentAccounts(deps: {
  accounts: Accounts;
  move: ReturnType<typeof createMove>["move"];
  common: ReturnType<typeof createMove>["common"];
  clock: Clock;
}) {
  const { accounts, move, common, clock } = deps;
  const collection: Collection<StoredAccount> = accounts.collection;

  async function payIn({ memo, messageHash, nanoUsd, transaction, buybackToken }: Payment): Promise<Moved> {
    const account = paymentAccount(memo);
    const opening = {
      name: account,
      tier: "standard" as const,
      frozen: false,
      held: 0n,
      openHolds: 0,
      holds: {},
      createdAt: new Date(clock.now()),
      ...(buybackToken !== undefined && { buybackToken }),
    };
    const entry = { _id: messageHash, kind: "credit" as const, ...common(account, nanoUsd), transaction };
    const moved = await move(entry, opening);
    if (moved.entry.account !== account) throw conflict("This payment was made for another request.");
    return moved;
  }

  async function payOut(account: string, { nanoUsd, transaction, reason }: Payout): Promise<Moved> {
    if (!isPaymentAccount(account)) throw notFound("payment");
    const moved = await move({
      _id: `payout:${account}:${transaction}`,
      kind: "payout",
      ...common(account, -nanoUsd),
      transaction,
      ...(reason !== undefined && { reason }),
    });
    if (moved.entry.amountNanoUsd !== -nanoUsd) throw conflict("This transaction was recorded with another amount.");
    return moved;
  }

  const owing = (openedBefore: Date) => ({
    _id: ids,
    available: { $gte: unitNanoUsd },
    createdAt: { $lt: openedBefore },
  });

  async function owed(openedBefore: Date): Promise<Owed> {
    const group = { _id: null, nanoUsd: { $sum: "$available" }, accounts: { $sum: 1 } };
    const sums = collection.aggregate<{ nanoUsd: bigint; accounts: number }>([
      { $match: owing(openedBefore) },
      { $group: group },
    ]);
    const [sum] = await answered(sums.toArray());
    return { nanoUsd: sum?.nanoUsd ?? 0n, accounts: Number(sum?.accounts ?? 0) };
  }

  /** In the order of their ids. */
  async function owedAccounts(openedBefore: Date, { limit, after }: Page): Promise<Account[]> {
    const filter = { ...owing(openedBefore), ...(after !== undefined && { _id: { ...ids, $gt: after } }) };
    const found = collection.find(filter, { projection: { holds: 0 }, sort: { _id: 1 }, limit });
    return (await answered(found.toArray())).map(toAccount);
  }

  /** Those that nobody can be paid from any more, with what is left in them. */
  async function spentAccounts(openedBefore: Date, limit: number): Promise<Account[]> {
    const spent = { _id: ids, available: { $lt: unitNanoUsd }, held: 0n, openHolds: 0 };
    const filter = { ...spent, createdAt: { $lt: openedBefore } };
    const found = collection.find(filter, { projection: { holds: 0 }, limit });
    return (await answered(found.toArray())).map(toAccount);
  }

  /** What is too little to be paid is written off, then the account goes; its entries stay. False: it is in use. */
  async function removeAccount({ id, availableNanoUsd }: Account): Promise<boolean> {
    if (availableNanoUsd > 0n)
      await move({
        _id: `writeoff:${id}`,
        kind: "adjustment",
        ...common(id, -availableNanoUsd),
        reason: "less than one unit of the token",
      });
    const empty = { _id: id, available: 0n, held: 0n, openHolds: 0 };
    const { deletedCount } = await answered(collection.deleteOne(empty));
    return deletedCount === 1;
  }

  return { payIn, payOut, owed, owedAccounts, spentAccounts, removeAccount };
}
