import { type Collection, mongo } from "mongoose";
import { invalidValue } from "#errors";
import { scatter } from "#platform/mongo/collection";
import { daysLater, firstHourOf } from "./dates.ts";
import { rowsBetween, type StoredUsageDay, type StoredUsageHour, unpricedCost } from "./rows.ts";
import { type FoundUsage, firstOpenDay, summed, sumsOf, type UsageSums, withDay } from "./views.ts";

export const serviceUsageGroups = ["day", "model", "account"] as const;
export type ServiceUsageGroup = (typeof serviceUsageGroups)[number];

export interface ServiceUsageQuery {
  /** Days, both inclusive. */
  readonly from: string;
  readonly to: string;
  readonly accounts?: readonly string[] | undefined;
  readonly model?: string | undefined;
  readonly groupBy: readonly ServiceUsageGroup[];
  readonly limit: number;
}

export interface ServiceUsageSums extends UsageSums {
  /** The charges of upstreams. Zero for calls with own provider keys. */
  readonly upstreamCostNanoUsd: bigint;
  /** The part of the cost from uploads, and from calls whose upstream's charge is not known. */
  readonly unpricedNanoUsd: bigint;
  /** The rest of the cost, less what the upstreams charge us. */
  readonly marginNanoUsd: bigint;
}

/** The usage of a group, of all accounts. A model is null for calls where it is unknown, and for uploads. */
export type ServiceUsageRow = { readonly [Group in ServiceUsageGroup]?: string | null } & ServiceUsageSums;

interface FoundServiceUsage extends FoundUsage<ServiceUsageGroup> {
  readonly upstreamCost: bigint;
  readonly unpriced: bigint;
}

/** The query ends on the server after this time. A million rows take about six seconds. */
const maxTimeMS = 20_000;

/** MongoDB's code MaxTimeMSExpired. */
const isTooLate = (error: unknown) => error instanceof mongo.MongoServerError && error.code === 50;

function toRow({ _id, upstreamCost, unpriced, ...found }: FoundServiceUsage): ServiceUsageRow {
  const sums = sumsOf(found);
  const [upstreamCostNanoUsd, unpricedNanoUsd] = [BigInt(upstreamCost), BigInt(unpriced)];
  const marginNanoUsd = sums.costNanoUsd - unpricedNanoUsd - upstreamCostNanoUsd;
  return { ..._id, ...sums, upstreamCostNanoUsd, unpricedNanoUsd, marginNanoUsd };
}

/**
 * Sums the usage of all accounts, or of some, for the operator: rows of final days, and of hours for the others. By day in
 * order, otherwise the largest cost first.
 */
export function createServiceUsage(deps: {
  readonly days: Collection<StoredUsageDay>;
  readonly hours: Collection<StoredUsageHour>;
  readonly lastClosed: () => Promise<string>;
}) {
  const { days, hours, lastClosed } = deps;
  return async ({ from, to, accounts, model, groupBy, limit }: ServiceUsageQuery): Promise<ServiceUsageRow[]> => {
    const closed = await lastClosed();
    const open = firstOpenDay(closed, from);
    const end = daysLater(to, 1);
    const between = (unit: "day" | "hour", first: string, until: string) =>
      accounts ? { account: { $in: accounts }, [unit]: { $gte: first, $lt: until } } : rowsBetween(unit, first, until);
    const filter = model === undefined ? {} : { model };
    const ofDays = { ...between("day", from, open < end ? open : end), ...filter };
    const ofHours = { ...between("hour", firstHourOf(open), firstHourOf(end)), ...filter };
    const groups = serviceUsageGroups.filter((field) => groupBy.includes(field));
    const group = Object.fromEntries(groups.map((field) => [field, { $ifNull: [`$${field}`, null] }]));
    const sums = Object.fromEntries([...summed, "upstreamCost"].map((field) => [field, { $sum: `$${field}` }]));
    const pipeline = [
      { $match: ofHours },
      withDay,
      { $unionWith: { coll: days.collectionName, pipeline: [{ $match: ofDays }] } },
      // Not a stage of its own, which would copy each row.
      { $group: { _id: group, ...sums, unpriced: { $sum: unpricedCost } } },
      { $sort: groups.includes("day") ? { "_id.day": 1, cost: -1, _id: 1 } : { cost: -1, _id: 1 } },
      { $limit: limit },
    ];
    const options = { maxTimeMS, ...(!accounts && scatter("operator")) };
    const found = (hours as Collection<object>).aggregate<FoundServiceUsage>(pipeline, options);
    try {
      return (await found.toArray()).map(toRow);
    } catch (error) {
      if (!isTooLate(error)) throw error;
      throw invalidValue("from", "from: adding up so many rows takes too long; ask for fewer days, or for accounts.");
    }
  };
}
