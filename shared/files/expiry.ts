import type { Collection, mongo } from "mongoose";
import { dayMs } from "#platform/clock";
import { scatter } from "#platform/mongo/collection";
import type { Uses } from "#platform/uses";
import { fromMongo, type StoredObject } from "./records.ts";
import type { MultipartMarker, Storage } from "./storage.ts";

interface Deps extends Uses<"clock" | "log"> {
  readonly collection: Collection<StoredObject>;
  readonly keyOf: (id: string) => string;
  /** Releases their holds before objects are deleted. Returns the ids for which it failed. */
  readonly release?: (ids: readonly string[]) => Promise<ReadonlySet<string>>;
  readonly storage: Storage;
}

const batchSize = 200;
const maxBatches = 50;
const retryDelayMs = 60_000;
const ended = { $in: ["expired" as const, "deleted" as const] };

export function createExpiry({ collection, keyOf, release, storage, clock, log }: Deps) {
  /**
   * Cleans up records that have ended: first their money, then their objects, then the record or its `dueAt`.
   * Idempotent. Failed records are due again in a minute. Returns the number of completed records.
   */
  async function cleanUp(ids: readonly string[]): Promise<number> {
    if (ids.length === 0) return 0;
    const unreleased = await release?.(ids);
    const released = ids.filter((id) => !unreleased?.has(id));
    const remaining = await storage.remove(released.map(keyOf));
    const done = released.filter((id) => !remaining.has(keyOf(id)));
    const cleaned = { _id: { $in: done }, status: ended };
    const { modifiedCount } = await fromMongo(
      collection.updateMany({ ...cleaned, announced: true, dueAt: { $exists: true } }, { $unset: { dueAt: "" } }),
    );
    const { deletedCount } = await fromMongo(collection.deleteMany({ ...cleaned, announced: false }));
    const failed = ids.filter((id) => !done.includes(id));
    if (failed.length > 0) {
      log.warn({ files: failed.length, first: failed[0] }, "expired files could not be removed; this will be retried");
      const dueAt = new Date(clock.now() + retryDelayMs);
      await fromMongo(collection.updateMany({ _id: { $in: failed }, status: ended }, { $set: { dueAt } }));
    }
    return modifiedCount + deletedCount;
  }

  async function findDue(filter: mongo.Filter<StoredObject>, now: Date) {
    const due = collection.find({ ...filter, dueAt: { $lte: now } }, { projection: { _id: 1 }, ...scatter("expiry") });
    const page = await fromMongo(due.sort({ dueAt: 1 }).limit(batchSize).toArray());
    return page.map(({ _id }) => _id);
  }

  /**
   * Expires due records and cleans them up, in a bounded number of batches. Safe in many processes at once. Returns the
   * number of records marked expired and the number of records whose objects were deleted.
   */
  async function run() {
    let expired = 0;
    let removed = 0;
    for (let batch = 0; batch < maxBatches; batch++) {
      const now = new Date(clock.now());
      const ids = await findDue({}, now);
      const inBatch = { _id: { $in: ids } };
      // A record that has since become active is no longer due and does not match.
      const overdue = { ...inBatch, status: { $in: ["pending" as const, "active" as const] }, dueAt: { $lte: now } };
      const { modifiedCount } = await fromMongo(collection.updateMany(overdue, { $set: { status: "expired" } }));
      expired += modifiedCount;
      const cleaned = await cleanUp(await findDue({ ...inBatch, status: ended }, now));
      removed += cleaned;
      // A full batch without progress means that storage is unavailable.
      if (ids.length < batchSize || cleaned === 0) break;
    }
    return { expired, removed };
  }

  async function dueSince(): Promise<number | undefined> {
    const options = { sort: { dueAt: 1 }, projection: { _id: 0, dueAt: 1 }, ...scatter("metrics") } as const;
    const first = await fromMongo(collection.findOne({ dueAt: { $lte: new Date(clock.now()) } }, options));
    return first?.dueAt?.getTime();
  }

  return { cleanUp, run, dueSince };
}

/** Aborts multipart uploads that can no longer be completed. Each call processes one page of storage's list. */
export function createMultipartCleanup({
  storage,
  clock,
  prefix,
}: Uses<"clock"> & { storage: Storage; prefix: string }) {
  let marker: MultipartMarker | undefined;

  return async function abortAbandoned(): Promise<void> {
    const { uploads, next } = await storage.multipart.list(prefix, marker);
    marker = next;
    // No upload stays pending for a day.
    const oldest = clock.now() - dayMs;
    const abandoned = new Set(
      uploads.filter(({ Initiated }) => (Initiated?.getTime() ?? 0) < oldest).map(({ Key = "" }) => Key),
    );
    for (const key of abandoned) await storage.multipart.abort(key);
  };
}
