import type { mongo as driver } from "mongoose";
import { longRunning, olderThan, type Page, scatter } from "#platform/mongo/collection";
import { type Account, type Accounts, type StoredAccount, toAccount } from "./accounts.ts";

const prefix = "x402:";
const ids = { $gte: prefix, $lt: "x402;" };
/** One unit of USDC, which has six decimals: the smallest amount that can be paid on chain. */
export const unitNanoUsd = 1_000n;

export const paymentAccount = (memo: string): string => `${prefix}${memo}`;
export const isPaymentAccount = (id: string): boolean => id.startsWith(prefix);

/** Filters of partial indexes: accounts that owe their payer something, and accounts that can be removed on expiry. */
export const withUnused = { _id: ids, available: { $gte: unitNanoUsd } };
export const unusedIndex = { _id: 1, available: 1, createdAt: 1 } as const;
export const withoutUnused = { _id: ids, available: { $lt: unitNanoUsd }, held: 0n, openHolds: 0 };
/** Differs from the key of other indexes, so that a hint is unambiguous. */
export const spentIndex = { createdAt: -1, _id: -1, available: 1 } as const;

const pageKeys = 100_000;

export function createPaymentAccounts({ collection }: Accounts) {
  /** Sums the available amounts of payment accounts, except amounts too small to be paid back. */
  async function sumUnused(openedBefore: Date) {
    const total = { nanoUsd: 0n, payments: 0 };
    for (let after = prefix; ; ) {
      const unused = { ...withUnused, _id: { ...ids, $gt: after }, createdAt: { $lt: openedBefore } };
      const sums = collection.aggregate<{ nanoUsd: bigint; payments: number; last: string }>(
        [
          { $match: unused },
          { $sort: { _id: 1 } },
          { $limit: pageKeys },
          { $project: { available: 1 } },
          { $group: { _id: null, nanoUsd: { $sum: "$available" }, payments: { $sum: 1 }, last: { $max: "$_id" } } },
        ],
        { hint: unusedIndex, ...longRunning, ...scatter("unused payments") },
      );
      const [sum] = await sums.toArray();
      total.nanoUsd += sum?.nanoUsd ?? 0n;
      total.payments += Number(sum?.payments ?? 0);
      if (!sum || sum.payments < pageKeys) return total;
      after = sum.last;
    }
  }

  async function list(filter: driver.Filter<StoredAccount>, options: driver.FindOptions): Promise<Account[]> {
    const found = collection.find(filter, { projection: { holds: 0 }, ...options, ...scatter("unused payments") });
    return (await found.toArray()).map(toAccount);
  }

  /** Lists the same accounts, ordered by id. */
  const unusedAccounts = (openedBefore: Date, { limit, after = prefix }: Page): Promise<Account[]> =>
    list(
      { ...withUnused, _id: { ...ids, $gt: after }, createdAt: { $lt: openedBefore } },
      { sort: { _id: 1 }, hint: unusedIndex, limit },
    );

  /** Lists payment accounts with nothing to pay back and no open hold, newest first. */
  const spentAccounts = (openedBefore: Date, { limit, after }: { limit: number; after?: Account | undefined }) =>
    list(
      {
        ...withoutUnused,
        $and: [{ createdAt: { $lt: openedBefore } }, ...(after ? [olderThan(after.id, after.createdAt)] : [])],
      },
      { sort: { createdAt: -1, _id: -1 }, hint: spentIndex, limit },
    );

  return { sumUnused, unusedAccounts, spentAccounts };
}
