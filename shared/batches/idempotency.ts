import type { Collection, mongo as driver } from "mongoose";
import { idempotencyKeyReused } from "#errors";
import { dayMs } from "#platform/clock";
import type { Uses } from "#platform/uses";
import type { IdempotentRequest, StoredBatch } from "./collections.ts";

/**
 * Finds the batch that a request with the same `Idempotency-Key` has created within 24 hours. Afterwards the key is free.
 * Throws 409 if that was another request.
 */
export async function findCreated(
  { collection, clock }: Uses<"clock"> & { readonly collection: Collection<StoredBatch> },
  account: string,
  { key, hash }: Pick<IdempotentRequest, "key" | "hash">,
): Promise<StoredBatch | undefined> {
  const filter = { account, "idempotency.key": key } as driver.Filter<StoredBatch>;
  const found = (await collection.findOne(filter)) as StoredBatch | null;
  if (!found) return undefined;
  if (found.createdAt.getTime() <= clock.now() - dayMs) {
    await collection.updateOne({ ...filter, _id: found._id }, {
      $unset: { idempotency: "" },
    } as driver.UpdateFilter<StoredBatch>);
    return undefined;
  }
  if (found.idempotency?.hash !== hash) throw idempotencyKeyReused();
  return found;
}
