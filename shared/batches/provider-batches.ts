import type { Collection, mongo as driver } from "mongoose";
import { dayMs } from "#platform/clock";
import { randomBase62 } from "#platform/ids";
import { scatter } from "#platform/mongo/collection";
import type { Uses } from "#platform/uses";
import type { StoredProviderBatch } from "./collections.ts";

/** Ended ones are kept this long, for operators. */
const keptMs = 7 * dayMs;
/** Lines are collected for a minute. One that was not sealed by then has lost its process: a worker takes what there is. */
const collectedMs = 5 * 60_000;

const prefix = "pb_";
export const newProviderBatchId = (): string => prefix + randomBase62(20);
/** Tells whether a lease's owner is a batch of a provider. */
export const isProviderBatch = (owner: string): boolean => owner.startsWith(prefix);

/** Batches of lines at providers. A worker works at one while it has its claim, as at a batch. */
export function createProviderBatches({
  collection,
  claimMs,
  clock,
}: Uses<"clock"> & { collection: Collection<StoredProviderBatch>; claimMs: number }) {
  type Filter = driver.Filter<StoredProviderBatch>;
  type Update = driver.UpdateFilter<StoredProviderBatch>;
  const mine = ({ account, _id, claimedBy }: StoredProviderBatch) => ({ account, _id, claimedBy }) as Filter;

  return {
    /** Begins to collect lines. */
    async create(
      batch: Pick<StoredProviderBatch, "_id" | "account" | "batch" | "upstream" | "model" | "job" | "giveUpAt">,
    ): Promise<void> {
      const now = clock.now();
      const dueAt = new Date(now + collectedMs);
      const stored = { ...batch, status: "collecting", createdAt: new Date(now), dueAt, tries: 0 };
      await collection.insertOne(stored as never);
    },

    /** Deletes one without lines, for which nothing could be held. */
    async remove({ account, _id }: Pick<StoredProviderBatch, "account" | "_id">): Promise<void> {
      await collection.deleteOne({ account, _id, status: "collecting" } as Filter);
    },

    /** Ends the collecting, so that workers submit what there is. `ids` defaults to all of the batch. */
    async seal({ account, batch }: Pick<StoredProviderBatch, "account" | "batch">, ids?: readonly string[]) {
      const filter = { account, batch, status: "collecting", ...(ids && { _id: { $in: [...ids] } }) } as Filter;
      const change = { $set: { status: "ready", dueAt: new Date(clock.now()) } };
      await collection.updateMany(filter, change as Update);
    },

    /** Lets a worker look at those of a batch now, because it was cancelled or has expired. */
    async hurry({ account, batch }: Pick<StoredProviderBatch, "account" | "batch">): Promise<void> {
      const filter = { account, batch, dueAt: { $exists: true }, claimedBy: { $exists: false } } as Filter;
      await collection.updateMany(filter, { $set: { dueAt: new Date(clock.now()) } } as Update);
    },

    /** Claims the longest due. */
    async claim(by: string): Promise<StoredProviderBatch | undefined> {
      const now = clock.now();
      const found = await collection.findOne({ dueAt: { $lte: new Date(now) } } as Filter, {
        ...scatter("provider batches that are due"),
        sort: { dueAt: 1 },
        projection: { account: 1, dueAt: 1 },
      });
      if (!found) return undefined;
      const { account, _id, dueAt } = found;
      const change = { $set: { claimedBy: by, dueAt: new Date(now + claimMs) } };
      const claimed = await collection.findOneAndUpdate({ account, _id, dueAt } as Filter, change as Update, {
        returnDocument: "after",
      });
      return (claimed ?? undefined) as StoredProviderBatch | undefined;
    },

    /** Keeps the claim. Returns false if another worker has it. */
    async renew(batch: StoredProviderBatch, set: Partial<StoredProviderBatch> = {}): Promise<boolean> {
      const change = { $set: { ...set, dueAt: new Date(clock.now() + claimMs) } };
      return (await collection.updateOne(mine(batch), change as Update)).matchedCount === 1;
    },

    /** Gives the claim back. It is due again after `pauseMs`. */
    async release(batch: StoredProviderBatch, pauseMs: number, set: Partial<StoredProviderBatch> = {}): Promise<void> {
      const change = { $set: { ...set, dueAt: new Date(clock.now() + pauseMs) }, $unset: { claimedBy: "" } };
      await collection.updateOne(mine(batch), change as Update);
    },

    async end(batch: StoredProviderBatch): Promise<void> {
      const change = {
        $set: { status: "ended", purgeAt: new Date(clock.now() + keptMs) },
        $unset: { claimedBy: "", dueAt: "" },
      };
      await collection.updateOne(mine(batch), change as Update);
    },

    /** The ids of those of a batch that have not ended. */
    async openOf(account: string, batch: string): Promise<ReadonlySet<string>> {
      const open = collection.find({ account, batch, status: { $ne: "ended" } } as Filter, { projection: { _id: 1 } });
      return new Set((await open.toArray()).map(({ _id }) => _id));
    },

    /** Tells whether lines of it may still be captured. */
    async isOpen(_id: string): Promise<boolean> {
      const options = { ...scatter("provider batch of a lease"), projection: { status: 1 } };
      const found = await collection.findOne({ _id } as Filter, options);
      return found !== null && found.status !== "ended";
    },
  };
}

export type ProviderBatches = ReturnType<typeof createProviderBatches>;
