import type { Collection, mongo } from "mongoose";
import { dayMs } from "#platform/clock";
import { scatter } from "#platform/mongo/collection";
import type { Uses } from "#platform/uses";
import { fromMongo, type StoredObject } from "./records.ts";
import type { MultipartMarker, Storage } from "./storage.ts";

/** The accounts of the records, which a collection that is sharded by account needs. */
export interface Owner {
  readonly account?: string | { readonly $in: readonly string[] };
}

interface Deps extends Uses<"clock" | "log"> {
  readonly collection: Collection<StoredObject>;
  /** Returns the keys of the objects of each record. */
  readonly keysOf: (ids: readonly string[], owner: Owner) => Promise<ReadonlyMap<string, readonly string[]>>;
  /** How long an announced record stays after its objects are deleted. Defaults to forever. */
  readonly keepMs?: number;
  /** Releases their holds before objects are deleted. Returns the ids for which it failed. */
  readonly release?: (ids: readonly string[]) => Promise<ReadonlySet<string>>;
  readonly storage: Storage;
}

const batchSize = 200;
const maxBatches = 50;
const retryDelayMs = 60_000;
const ended = { $in: ["expired" as const, "deleted" as const] };

export function createExpiry(deps: Deps) {
  const { collection, keysOf, keepMs, release, storage, clock, log } = deps;

  /**
   * Cleans up records that have ended: first their money, then their objects, then the record or its `dueAt`.
   * Idempotent. Failed records are due again in a minute. Returns the number of completed records.
   */
  async function cleanUp(ids: readonly string[], owner: Owner = {}): Promise<number> {
    if (ids.length === 0) return 0;
    const unreleased = await release?.(ids);
    const released = ids.filter((id) => !unreleased?.has(id));
    const keys = await keysOf(released, owner);
    const remaining = await storage.remove([...keys.values()].flat());
    const done = released.filter((id) => !keys.get(id)?.some((key) => remaining.has(key)));
    const now = clock.now();
    const cleaned = { ...owner, _id: { $in: done }, status: ended };
    const kept =
      keepMs === undefined
        ? { $unset: { dueAt: "" as const } }
        : { $set: { announced: false, dueAt: new Date(now + keepMs) } };
    const announced = { ...cleaned, announced: true, dueAt: { $exists: true } };
    const { modifiedCount } = await fromMongo(collection.updateMany(announced, kept));
    // A record that is kept for a while is not due.
    const unannounced = { ...cleaned, announced: false, dueAt: { $lte: new Date(now) } };
    const { deletedCount } = await fromMongo(collection.deleteMany(unannounced));
    const failed = ids.filter((id) => !done.includes(id));
    if (failed.length > 0) {
      log.warn({ files: failed.length, first: failed[0] }, "expired files could not be removed; this will be retried");
      const dueAt = new Date(now + retryDelayMs);
      const again = { ...owner, _id: { $in: failed }, status: ended };
      await fromMongo(collection.updateMany(again, { $set: { dueAt } }));
    }
    return modifiedCount + deletedCount;
  }

  async function findDue(filter: mongo.Filter<StoredObject>, now: Date) {
    const options = { projection: { account: 1 }, ...scatter("expiry") };
    const due = collection.find({ ...filter, dueAt: { $lte: now } }, options);
    const page = await fromMongo(due.sort({ dueAt: 1 }).limit(batchSize).toArray());
    const accounts = [...new Set(page.map(({ account }) => account))];
    return { ids: page.map(({ _id }) => _id), owner: { account: { $in: accounts } } };
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
      const { ids, owner } = await findDue({}, now);
      const inBatch = { ...owner, _id: { $in: ids } };
      // A record that has since become active is no longer due and does not match.
      const overdue = { ...inBatch, status: { $in: ["pending" as const, "active" as const] }, dueAt: { $lte: now } };
      const { modifiedCount } = await fromMongo(collection.updateMany(overdue, { $set: { status: "expired" } }));
      expired += modifiedCount;
      const due = await findDue({ ...inBatch, status: ended }, now);
      const cleaned = await cleanUp(due.ids, due.owner);
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

/** The keys of records that have one object each. */
export const oneObject = (keyOf: (id: string) => string) => async (ids: readonly string[]) =>
  new Map(ids.map((id) => [id, [keyOf(id)]]));

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
