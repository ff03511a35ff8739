import type { Collection } from "mongoose";
import { daysLater, firstHourOf } from "./dates.ts";
import type { StoredUsageDay } from "./rows.ts";

export const usageGroups = ["day", "model", "key", "endpoint"] as const;
export type UsageGroup = (typeof usageGroups)[number];

export interface UsageQuery {
  /** Days, both inclusive. */
  readonly from: string;
  readonly to: string;
  readonly key?: string | undefined;
  readonly groupBy: readonly UsageGroup[];
  readonly limit: number;
}

/** The usage of a group. A grouping field is null for calls where it is unknown. */
export type UsageRow = { readonly [Group in UsageGroup]?: string | null } & {
  readonly calls: number;
  readonly failed: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  readonly units: number;
  readonly costNanoUsd: bigint;
};

type Sums = Record<"calls" | "failed" | "input" | "output" | "cached" | "units", number> & { readonly cost: bigint };

/** Seconds and minutes have 6 decimals, so their sums are rounded to as many. */
const rounded = (units: number) => Math.round(units * 1e6) / 1e6;

/** Sums rows of days and hours, whose number depends on keys, models and endpoints rather than on calls. */
export const createUsageViews =
  ({ days, lastClosed }: { days: Collection<StoredUsageDay>; lastClosed: () => Promise<string> }) =>
  async (account: string, { from, to, key, groupBy, limit }: UsageQuery): Promise<UsageRow[]> => {
    const fields = usageGroups.filter((field) => groupBy.includes(field));
    const sums = ["calls", "failed", "input", "output", "cached", "units", "cost"];
    const closed = await lastClosed();
    const open = closed >= from ? daysLater(closed, 1) : from;
    const rows = { account, ...(key !== undefined && { key }) };
    const ofHours = [
      { $match: { ...rows, hour: { $gte: firstHourOf(open), $lt: firstHourOf(daysLater(to, 1)) } } },
      { $set: { day: { $substrBytes: ["$hour", 0, "2026-11-23".length] } } },
    ];
    const pipeline = [
      { $match: { ...rows, day: { $gte: from, $lte: to, $lt: open } } },
      { $unionWith: { coll: "usageHours", pipeline: ofHours } },
      {
        $group: {
          _id: Object.fromEntries(fields.map((field) => [field, { $ifNull: [`$${field}`, null] }])),
          ...Object.fromEntries(sums.map((field) => [field, { $sum: `$${field}` }])),
        },
      },
      { $sort: { _id: 1 } },
      { $limit: limit },
    ];
    const found = days.aggregate<{ _id: Partial<Record<UsageGroup, string | null>> } & Sums>(pipeline);
    return (await found.toArray()).map(({ _id, calls, failed, input, output, cached, units, cost }) => ({
      ..._id,
      calls,
      failed,
      inputTokens: input,
      outputTokens: output,
      cachedTokens: cached,
      units: rounded(units),
      costNanoUsd: BigInt(cost),
    }));
  };
