/**
 * How the calls of each account use the response cache, by UTC day and key. Owns the collection `cacheUsage`. Counts are
 * summed in memory and written once a second. They are statistics, not money: those of a process's last second may be
 * missing, and those that MongoDB applied without confirming them count twice.
 */
import type { Collection } from "mongoose";
import { dayOf } from "#money";
import { dayMs } from "#platform/clock";
import { oneAtATime } from "#platform/concurrency/one-at-a-time";
import { type DocumentOf, openCollection } from "#platform/mongo/collection";
import { createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";
import type { Uses } from "#platform/uses";

const writeMs = 1_000;
/** Limits the rows in memory while MongoDB is unavailable. Calls that would need another row are not counted. */
const maxRows = 10_000;
/** Limits the rows of one command, which the database must answer in time. */
const maxWritten = 1_000;
const keptDays = 400;
/** Limits the keys of a view to those with the most hits. */
const maxKeys = 1_000;

const definition = {
  account: { type: String, required: true },
  /** The beginning of the day, in UTC. */
  day: { type: Date, required: true },
  key: { type: String, required: true },
  hits: { type: Number, required: true },
  /** The hits that waited for an equal call to end. */
  coalesced: { type: Number, required: true },
  misses: { type: Number, required: true },
  refreshes: { type: Number, required: true },
  bypasses: { type: Number, required: true },
  /** What the hits would have cost. */
  savedNanoUsd: { type: BigInt, required: true },
} as const;
type Stored = DocumentOf<typeof definition>;

export const cacheUsageSchema = {
  module: "cache-usage",
  shardKeys: { cacheUsage: "account" },
  migrations: [
    createCollections("cacheUsage", [
      {
        collection: "cacheUsage",
        indexes: [
          { key: { account: 1, day: 1, key: 1 }, unique: true },
          { key: { day: 1 }, expireAfterSeconds: (keptDays * dayMs) / 1_000 },
        ],
      },
    ]),
  ],
} satisfies ModuleSchema;

const counts = ["hits", "coalesced", "misses", "refreshes", "bypasses"] as const;
type Sums = { [Name in (typeof counts)[number]]: number } & { savedNanoUsd: bigint };
type Group = Pick<Stored, "account" | "day" | "key">;

function sumOf(rows: readonly Sums[]): Sums {
  const sums: Sums = { hits: 0, coalesced: 0, misses: 0, refreshes: 0, bypasses: 0, savedNanoUsd: 0n };
  for (const row of rows) {
    // A count beyond 32 bits is read as a bigint.
    for (const name of counts) sums[name] += Number(row[name]);
    sums.savedNanoUsd += row.savedNanoUsd;
  }
  return sums;
}

const toChange = ([filter, sums]: readonly [Group, Sums]) => ({
  updateOne: { filter, update: { $inc: sums }, upsert: true },
});

const none = sumOf([]);
const countOf = { hit: "hits", miss: "misses", refresh: "refreshes", bypass: "bypasses" } as const;

export interface CacheUse {
  readonly account: string;
  readonly key: string;
  readonly outcome: keyof typeof countOf;
  /** The hit waited for an equal call to end. */
  readonly coalesced?: true;
  /** The cost that a hit saved. */
  readonly savedNanoUsd?: bigint;
}

export type CacheUsage = ReturnType<typeof createCacheUsage>;

export function createCacheUsage({ mongo, clock, log }: Uses<"mongo" | "clock" | "log">) {
  const { collection } = openCollection<Stored>(mongo, "cacheUsage", definition);
  let rows = new Map<string, readonly [Group, Sums]>();

  function add(group: Group, more: Sums): void {
    const id = `${group.account}/${group.day.getTime()}/${group.key}`;
    const row = rows.get(id);
    if (row || rows.size < maxRows) rows.set(id, [group, row ? sumOf([row[1], more]) : more]);
  }

  const write = oneAtATime(log, "the use of the response cache was not recorded", async () => {
    if (rows.size === 0) return;
    const taken = [...rows.values()];
    rows = new Map();
    try {
      while (taken.length > 0) {
        const changes = taken.slice(-maxWritten).map(toChange);
        await collection.bulkWrite(changes, { ordered: false });
        taken.length -= changes.length;
      }
    } catch (error) {
      for (const row of taken) add(...row);
      throw error;
    }
  });
  const stop = clock.every(writeMs, () => void write());

  function sumBy<Id>(group: "day" | "key", match: object, sort: object, limit: number) {
    const sums = Object.fromEntries([...counts, "savedNanoUsd"].map((name) => [name, { $sum: `$${name}` }]));
    const pipeline = [{ $match: match }, { $group: { _id: `$${group}`, ...sums } }, { $sort: sort }, { $limit: limit }];
    return (collection as Collection<object>).aggregate<Sums & { readonly _id: Id }>(pipeline).toArray();
  }

  return {
    /** Returns at once. */
    note({ account, key, outcome, coalesced, savedNanoUsd = 0n }: CacheUse): void {
      const now = clock.now();
      const day = new Date(now - (now % dayMs));
      add({ account, day, key }, { ...none, [countOf[outcome]]: 1, coalesced: coalesced ? 1 : 0, savedNanoUsd });
    },

    /** Sums of an account: of all its calls, by day, and by the keys with the most hits. Both days are inclusive. */
    async read(account: string, { from, to }: { readonly from: string; readonly to: string }) {
      const match = { account, day: { $gte: new Date(from), $lte: new Date(to) } };
      const [days, keys] = await Promise.all([
        sumBy<Date>("day", match, { _id: 1 }, keptDays + 1),
        sumBy<string>("key", match, { hits: -1, _id: 1 }, maxKeys),
      ]);
      return {
        total: sumOf(days),
        days: days.map((row) => ({ date: dayOf(row._id), ...sumOf([row]) })),
        keys: keys.map((row) => ({ key: row._id, ...sumOf([row]) })),
      };
    },

    async stop(): Promise<void> {
      stop();
      await write();
    },
  };
}
