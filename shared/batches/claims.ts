import type { Collection, mongo as driver } from "mongoose";
import { scatter } from "#platform/mongo/collection";
import type { Uses } from "#platform/uses";
import type { BatchStatus, StoredBatch } from "./collections.ts";
import { turnMs } from "./open-batches.ts";

type Filter = driver.Filter<StoredBatch>;
type Update = driver.UpdateFilter<StoredBatch>;
const after = { returnDocument: "after" } as const;

/** The batch, if its claim is still that of this process. */
export const claimedBatch = ({ account, _id, claimedBy }: StoredBatch, more: object = {}) =>
  ({ account, _id, claimedBy, ...more }) as Filter;

/** Which process works at a batch. */
export function createClaims({
  collection,
  claimMs,
  clock,
}: Uses<"clock"> & { collection: Collection<StoredBatch>; claimMs: number }) {
  const claimedUntil = () => ({ dueAt: new Date(clock.now() + claimMs) });

  return {
    /**
     * Claims a batch that no process works at, the longest due first. `without`: accounts of which this process has enough.
     */
    async claim(
      by: string,
      statuses: readonly BatchStatus[],
      without: readonly string[] = [],
    ): Promise<StoredBatch | undefined> {
      const filter = {
        dueAt: { $lte: new Date(clock.now()) },
        status: { $in: [...statuses] },
        ...(without.length > 0 && { account: { $nin: [...without] } }),
      } as Filter;
      const found = await collection.findOne(filter, {
        ...scatter("batches that are due"),
        sort: { dueAt: 1 },
        projection: { account: 1, dueAt: 1 },
      });
      if (!found) return undefined;
      const { account, _id, dueAt } = found;
      const hasWaited = (dueAt?.getTime() ?? 0) < clock.now() - turnMs;
      const claimed = await collection.findOneAndUpdate(
        { account, _id, dueAt, status: { $in: [...statuses] } } as Filter,
        {
          $set: { claimedBy: by, ...claimedUntil(), ...(hasWaited && { progressAt: new Date(clock.now()) }) },
        } as Update,
        after,
      );
      return (claimed ?? undefined) as StoredBatch | undefined;
    },

    /** The batches whose lines processes run now: those whose claims are renewed. */
    claimed: (): Promise<Pick<StoredBatch, "account" | "endpoint" | "claimedBy">[]> =>
      collection
        .find(
          { dueAt: { $gt: new Date(clock.now()) }, status: "in_progress", claimedBy: { $exists: true } } as Filter,
          {
            ...scatter("batches that are worked at"),
            projection: { _id: 0, account: 1, endpoint: 1, claimedBy: 1 },
          },
        )
        .toArray() as Promise<StoredBatch[]>,

    /** Keeps the claim, and returns the batch as it is now. Undefined if another process has it, or it was deleted. */
    async renew(batch: StoredBatch): Promise<StoredBatch | undefined> {
      const renewed = await collection.findOneAndUpdate(claimedBatch(batch), { $set: claimedUntil() } as Update, after);
      return (renewed ?? undefined) as StoredBatch | undefined;
    },

    /**
     * Gives the claim back. The batch is claimed again after `pauseMs`, or at once if a provider has ended lines since it
     * was read: this process may not have seen that.
     */
    async release(batch: StoredBatch, pauseMs = 0): Promise<void> {
      const now = clock.now();
      const isSame = { $eq: [{ $ifNull: ["$providerEnds", 0] }, batch.providerEnds ?? 0] };
      const dueAt = { $cond: [isSame, new Date(now + pauseMs), new Date(now)] };
      await collection.updateOne(claimedBatch(batch), [{ $set: { dueAt } }, { $unset: "claimedBy" }]);
    },

    /** Notes that a provider works at lines of the batch. `hasEnded`: it has ended them, so there is something to record now. */
    async noteProgress(account: string, _id: string, { hasEnded }: { readonly hasEnded: boolean }): Promise<void> {
      const now = new Date(clock.now());
      const change = { $set: { progressAt: now }, $inc: { providerEnds: hasEnded ? 1 : 0 } };
      await collection.updateOne({ account, _id } as Filter, change as Update);
      if (!hasEnded) return;
      const waiting = { account, _id, dueAt: { $exists: true }, claimedBy: { $exists: false } } as Filter;
      await collection.updateOne(waiting, { $set: { dueAt: now } } as Update);
    },
  };
}
