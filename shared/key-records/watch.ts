import type { Collection, mongo as driver } from "mongoose";
import { dayMs } from "#platform/clock";
import type { Uses } from "#platform/uses";
import type { KeyBudget } from "./budget-period.ts";
import type { StoredKey } from "./collection.ts";

/** The expiry of a key is announced this many days before. */
export const expiryDays = [7, 1] as const;

const perRun = 500;
const lookEveryMs = 60_000;
/** A request may take this long from its authentication to the hold of its call. */
const admissionMs = 600_000;

/** The highest threshold of a budget that has been reached in the period that begins at `from`. */
interface Reached {
  /** Unix milliseconds. */
  readonly from: number;
  readonly limitNanoUsd: bigint;
  readonly percent: number;
}

/** A key whose calls may use up budgets: its own, and those of the keys that it shares. */
export interface WatchedKey {
  readonly id: string;
  readonly account: string;
  readonly lastUsedAt: Date | undefined;
  /** Unix milliseconds: what it spent before that has been looked at. */
  readonly since: number;
  readonly budgetOwners: readonly string[];
}

export interface WatchedBudget {
  readonly id: string;
  readonly account: string;
  readonly name: string | null;
  readonly prefix: string;
  readonly budget: KeyBudget;
  readonly reached: Reached | undefined;
}

export interface ExpiringKey {
  readonly id: string;
  readonly account: string;
  readonly name: string | null;
  readonly prefix: string;
  readonly expiresAt: Date;
}

type Filter = driver.Filter<StoredKey>;
type Update = driver.UpdateFilter<StoredKey>;

/** What the scheduled jobs that watch keys read and note. Any number of them may run at the same time. */
export function createKeyWatch({ collection, clock }: Uses<"clock"> & { collection: Collection<StoredKey> }) {
  const now = () => new Date(clock.now());

  return {
    /** Keys that were used since their budgets were last looked at. Each is due again after a minute. */
    async takeBudgetsDue(): Promise<WatchedKey[]> {
      const due = collection.find({ budgetDueAt: { $lte: now() } } as Filter, {
        sort: { budgetDueAt: 1 },
        limit: perRun,
      });
      const found = await due.toArray();
      const next = { $set: { budgetDueAt: new Date(clock.now() + lookEveryMs) } } as Update;
      await collection.updateMany({ _id: { $in: found.map(({ _id }) => _id) }, budgetDueAt: { $lte: now() } }, next);
      return found.map(({ _id: id, account, lastUsedAt, budgetDueAt, budget, sharesBudgetOf = [] }) => ({
        id,
        account,
        lastUsedAt,
        since: (budgetDueAt?.getTime() ?? clock.now()) - lookEveryMs,
        budgetOwners: [...(budget ? [id] : []), ...sharesBudgetOf],
      }));
    },

    /** Stops looking at the budgets of a key that has no open calls, unless it was used since or very recently. */
    async endBudgetWatch({ id, lastUsedAt }: WatchedKey): Promise<void> {
      if (lastUsedAt && clock.now() - lastUsedAt.getTime() < admissionMs) return;
      await collection.updateOne({ _id: id, lastUsedAt } as Filter, { $unset: { budgetDueAt: "" } } as Update);
    },

    async watchedBudget(account: string, _id: string): Promise<WatchedBudget | undefined> {
      const stored = await collection.findOne({ _id, account });
      if (!stored?.budget) return undefined;
      const { name = null, prefix, budget, budgetWatch } = stored;
      return {
        id: _id,
        account,
        name,
        prefix,
        budget: budget as KeyBudget,
        reached: budgetWatch as Reached | undefined,
      };
    },

    async noteReached(account: string, _id: string, reached: Reached): Promise<void> {
      await collection.updateOne({ _id, account }, { $set: { budgetWatch: reached } } as unknown as Update);
    },

    /** Keys that expire within this many days, or did so a week ago, if that has not been announced. */
    async expiringWithin(days: (typeof expiryDays)[number]): Promise<ExpiringKey[]> {
      const time = clock.now();
      const filter = {
        expiresAt: { $gt: new Date(time - 7 * dayMs), $lte: new Date(time + days * dayMs) },
        revokedAt: null,
        $expr: {
          $and: [
            { $ne: [`$announced.${days}`, "$expiresAt"] },
            // A key that was created later has a life that is shorter than the notice.
            { $lte: ["$createdAt", { $subtract: ["$expiresAt", days * dayMs] }] },
          ],
        },
      } as unknown as Filter;
      const found = await collection.find(filter, { sort: { expiresAt: 1 }, limit: perRun }).toArray();
      return found.flatMap(({ _id: id, account, name = null, prefix, expiresAt }) =>
        expiresAt ? [{ id, account, name, prefix, expiresAt }] : [],
      );
    },

    /** Changes nothing if the expiry was changed since. */
    async noteAnnounced({ id, expiresAt }: ExpiringKey, days: (typeof expiryDays)[number]): Promise<void> {
      await collection.updateOne({ _id: id, expiresAt }, {
        $set: { [`announced.${days}`]: expiresAt },
      } as unknown as Update);
    },
  };
}
