import type { Collection } from "mongoose";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { StoredLife } from "./records.ts";
import type { Storage } from "./storage.ts";
import type { Expired } from "./types.ts";
import { reach } from "./unavailable.ts";

export interface Expiry {
  /**
   * Removes what is left of records that have ended: money first, then objects, then the record, or what says that
   * something is left. Doing it again changes nothing. What cannot be done now is due again in a minute. Returns how many are done.
   */
  finish(ids: readonly string[]): Promise<number>;
  /** Ends what is over and finishes it, a bounded number of batches. Safe in many processes at once. */
  round(): Promise<Expired>;
}

interface Deps {
  readonly collection: Collection<StoredLife>;
  readonly keyOf: (id: string) => string;
  /** What has to be done before the objects go. Returns the ids for which it did not succeed. */
  readonly settle?: (ids: readonly string[]) => Promise<ReadonlySet<string>>;
  readonly storage: Storage;
  readonly clock: Clock;
  readonly log: Logger;
}

const batchSize = 200;
const mostBatches = 50;
const againMs = 60_000;
const ended = { $in: ["expired" as const, "deleted" as const] };

/** How uploads and generated files end, whoever ends them. */
export function createExpiry({ collection, keyOf, settle, storage, clock, log }: Deps): Expiry {
  async function finish(ids: readonly string[]): Promise<number> {
    if (ids.length === 0) return 0;
    const unsettled = await settle?.(ids);
    const settled = ids.filter((id) => !unsettled?.has(id));
    const left = await storage.remove(settled.map(keyOf));
    const done = settled.filter((id) => !left.has(keyOf(id)));
    const these = { _id: { $in: done }, status: ended };
    const kept = await reach(
      collection.updateMany({ ...these, announced: true, dueAt: { $exists: true } }, { $unset: { dueAt: "" } }),
    );
    const dropped = await reach(collection.deleteMany({ ...these, announced: false }));
    const failed = ids.filter((id) => !done.includes(id));
    if (failed.length > 0) {
      log.warn({ files: failed.length, first: failed[0] }, "files that have ended are not removed yet");
      const dueAt = new Date(clock.now() + againMs);
      await reach(collection.updateMany({ _id: { $in: failed }, status: ended }, { $set: { dueAt } }));
    }
    return kept.modifiedCount + dropped.deletedCount;
  }

  async function due(filter: { readonly _id: { readonly $in: string[] } } | Record<never, never>, now: Date) {
    const found = collection.find({ ...filter, dueAt: { $lte: now } }, { projection: { _id: 1 } });
    const page = await reach(found.sort({ dueAt: 1 }).limit(batchSize).toArray());
    return page.map(({ _id }) => _id);
  }

  async function round(): Promise<Expired> {
    let expired = 0;
    let removed = 0;
    for (let batch = 0; batch < mostBatches; batch++) {
      const now = new Date(clock.now());
      const found = await due({}, now);
      const these = { _id: { $in: found } };
      // What became active since is not due any more, and stays out.
      const over = { ...these, status: { $in: ["pending" as const, "active" as const] }, dueAt: { $lte: now } };
      const { modifiedCount } = await reach(collection.updateMany(over, { $set: { status: "expired" } }));
      expired += modifiedCount;
      const gone = await finish(await due({ ...these, status: ended }, now));
      removed += gone;
      // Nothing goes: storage is away.
      if (found.length < batchSize || gone === 0) break;
    }
    return { expired, removed };
  }

  return { finish, round };
}
