import { Schema } from "mongoose";
import type { DocumentOf } from "#platform/mongo/collection";

/** Missing for calls of which only the hold was known. */
const group = { key: { type: String }, model: { type: String }, endpoint: { type: String } } as const;
/** An hour or a day has one row for each combination of these fields. */
export const groupFields = ["account", "key", "model", "endpoint"] as const;
export const tagGroupFields = [...groupFields, "tag"] as const;
/** A row of this tag has all calls with tags, each once. No tag is empty. */
export const anyTag = "";
const row = {
  account: { type: String, required: true },
  ...group,
  /** The number of ledger entries that the row is computed from. */
  entries: { type: Number, required: true },
  calls: { type: Number, required: true },
  failed: { type: Number, required: true },
  /** Missing in rows that an earlier version wrote, as is the next field. */
  cancelled: { type: Number },
  /** Typed as `Buckets`. */
  latency: { type: Schema.Types.Mixed },
  input: { type: Number, required: true },
  output: { type: Number, required: true },
  cached: { type: Number, required: true },
  /** Everything not counted in tokens: images, seconds, characters. */
  units: { type: Number, required: true },
  /** Refunds are subtracted. */
  cost: { type: BigInt, required: true },
  /**
   * The list price of calls with own provider keys, and their fees, which are a part of the cost. Refunds are
   * subtracted. Missing in rows that an earlier version wrote.
   */
  byokList: { type: BigInt },
  byokFees: { type: BigInt },
  /** The amount that prompt caches took off the cost. Missing in rows that an earlier version wrote. */
  saved: { type: BigInt },
  /** The charges of upstreams. Missing in rows that an earlier version wrote, as is the next field. */
  upstreamCost: { type: BigInt },
  /** The part of the cost from uploads, and from calls whose upstream's charge is not known: see `unpricedCost`. */
  unpriced: { type: BigInt },
  /** The version of the run that wrote the row. */
  version: { type: Number, required: true },
} as const;
export const counts = ["entries", "calls", "failed", "cancelled", "input", "output", "cached", "units"] as const;
/** In nano-USD. */
export const amounts = ["cost", "saved", "byokList", "byokFees", "upstreamCost", "unpriced"] as const;

/** Matches the rows of a period of all accounts: their ids begin with it. `until` is exclusive. */
export const rowsBetween = (unit: "day" | "hour", from: string, until: string) =>
  ({ _id: { $gte: { [unit]: from }, $lt: { [unit]: until } } }) as object;

/** Nothing is known of the upstreams' charges in rows that an earlier version wrote. */
export const unpricedCost = { $ifNull: ["$unpriced", "$cost"] };

export const dayDefinition = {
  /** Day, account, key, model and endpoint, so that the rows of a day are a range. */
  _id: { type: Schema.Types.Mixed, required: true },
  /** `2026-11-23`, in UTC. */
  day: { type: String, required: true },
  ...row,
} as const;

export const hourDefinition = {
  /** Hour, account, key, model and endpoint. */
  _id: { type: Schema.Types.Mixed, required: true },
  /** `2026-11-23T05`, in UTC. */
  hour: { type: String, required: true },
  ...row,
  /** The part of the cost from entries before the `settledUntil` of the hour's state. */
  settled: { type: BigInt, required: true },
} as const;

const tag = { type: String, required: true } as const;
/** Rows of calls with tags, by tag too. A call counts in the row of each of its tags. */
export const tagDayDefinition = { ...dayDefinition, tag } as const;
export const tagHourDefinition = { _id: dayDefinition._id, hour: hourDefinition.hour, ...row, tag } as const;

/** An account's usage in a day by one key, of one model, at one endpoint. */
export type StoredUsageDay = DocumentOf<typeof dayDefinition>;
export type StoredUsageHour = DocumentOf<typeof hourDefinition>;
export type StoredTagDay = DocumentOf<typeof tagDayDefinition>;
export type StoredTagHour = DocumentOf<typeof tagHourDefinition>;

/**
 * Replaces the rows of a period, in MongoDB, with the incoming ones, whose `_id` is their group. Replaces either all
 * rows or those that changed, and none of a higher version. The caller removes rows without entries.
 */
export function replaceRows(
  into: string,
  period: { readonly day: string } | { readonly hour: string },
  stored: object,
  {
    version,
    all,
    moreAmounts = [],
    group = groupFields,
  }: { version: number; all: boolean; moreAmounts?: readonly string[]; group?: readonly string[] },
) {
  const sums = [...amounts, ...moreAmounts];
  const fields = [...counts, ...sums];
  const compared = ["entries", ...sums];
  const had = Object.fromEntries(compared.map((field) => [field, `$${field}`]));
  const changed = compared.map((field) => ({ $ne: [`$${field}`, `$had_${field}`] }));
  return [
    { $set: { _id: { $mergeObjects: [period, "$_id"] } } },
    { $unionWith: { coll: into, pipeline: [{ $match: stored }, { $project: { had } }] } },
    {
      $group: {
        _id: "$_id",
        ...Object.fromEntries(fields.map((field) => [field, { $sum: `$${field}` }])),
        latency: { $mergeObjects: "$latency" },
        ...Object.fromEntries(compared.map((field) => [`had_${field}`, { $sum: `$had.${field}` }])),
      },
    },
    ...(all ? [] : [{ $match: { $expr: { $or: changed } } }]),
    {
      $project: {
        ...Object.fromEntries([...Object.keys(period), ...group].map((field) => [field, `$_id.${field}`])),
        ...Object.fromEntries([...counts, "latency"].map((field) => [field, 1])),
        ...Object.fromEntries(sums.map((field) => [field, { $toLong: `$${field}` }])),
        version: { $literal: version },
      },
    },
    {
      $merge: {
        into,
        whenMatched: [{ $replaceWith: { $cond: [{ $gt: ["$version", version] }, "$$ROOT", "$$new"] } }],
        whenNotMatched: "insert",
      },
    },
  ];
}
