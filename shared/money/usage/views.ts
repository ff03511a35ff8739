import type { Collection } from "mongoose";
import { invalidValue } from "#errors";
import { type Buckets, percentileMs } from "#platform/time-buckets";
import { daysLater, firstHourOf } from "./dates.ts";
import { sumRows } from "./latency.ts";
import { anyTag, type StoredTagDay, type StoredTagHour, type StoredUsageDay, type StoredUsageHour } from "./rows.ts";

export const usageGroups = ["day", "hour", "model", "key", "endpoint", "tag", "session", "user"] as const;
export type UsageGroup = (typeof usageGroups)[number];

export interface UsageQuery {
  /** Days, or hours such as `2026-11-23T05`; both inclusive. Hours are kept for `hourDays`. */
  readonly from: string;
  readonly to: string;
  readonly key?: string | undefined;
  readonly model?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly tag?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly user?: string | undefined;
  readonly groupBy: readonly UsageGroup[];
  /** Computes the times to the first token too. */
  readonly latency?: boolean | undefined;
  readonly limit: number;
}

export interface UsageSums {
  readonly calls: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  readonly units: number;
  readonly costNanoUsd: bigint;
  /** The amount that prompt caches took off the cost. */
  readonly savedNanoUsd: bigint;
  /** Within 5 %. Undefined if not asked for, null without calls that have a time. */
  readonly firstTokenP50Ms?: number | null | undefined;
  readonly firstTokenP95Ms?: number | null | undefined;
}

/** The usage of a group. A grouping field is null for calls where it is unknown. A call counts in each of its tags. */
export type UsageRow = { readonly [Group in UsageGroup]?: string | null } & UsageSums;

export const summed = ["calls", "failed", "cancelled", "input", "output", "cached", "units", "cost", "saved"] as const;
/** Each tag has a row for each of its keys, models and endpoints. */
const maxTagRows = 100_000;
/** Each has some dozens of buckets. Adding those of so many rows takes MongoDB up to a second. */
const maxTimedRows = 10_000;
/** The query also ends on the server, so that retried views do not pile up. */
const timed = { maxTimeMS: 3_000 } as const;

/** Seconds and minutes have 6 decimals, so their sums are rounded to as many. */
const rounded = (units: number) => Math.round(units * 1e6) / 1e6;

/** A group as MongoDB sums it. */
export interface FoundUsage<Group extends string = UsageGroup>
  extends Record<Exclude<(typeof summed)[number], "cost" | "saved">, number> {
  readonly _id: Partial<Record<Group, string | null>>;
  readonly cost: bigint;
  readonly saved: bigint;
  readonly latency?: Buckets;
}

export const toRow = ({ _id, ...found }: FoundUsage): UsageRow => ({ ..._id, ...sumsOf(found) });

export function sumsOf({ latency, ...sums }: Omit<FoundUsage, "_id">): UsageSums {
  const { calls, failed, cancelled, input, output, cached, units, cost, saved } = sums;
  return {
    calls,
    failed,
    cancelled,
    inputTokens: input,
    outputTokens: output,
    cachedTokens: cached,
    units: rounded(units),
    costNanoUsd: BigInt(cost),
    savedNanoUsd: BigInt(saved),
    ...(latency && { firstTokenP50Ms: percentileMs(latency, 50), firstTokenP95Ms: percentileMs(latency, 95) }),
  };
}

/** Rows are by neither sessions nor users, whose number is unbounded. */
const isOfLedger = ({ groupBy, sessionId, user }: UsageQuery): boolean =>
  sessionId !== undefined || user !== undefined || groupBy.includes("session") || groupBy.includes("user");

/** The filters that are set. */
export const given = (filters: Readonly<Record<string, string | undefined>>) =>
  Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined));

interface Deps {
  readonly days: Collection<StoredUsageDay>;
  readonly hours: Collection<StoredUsageHour>;
  readonly tagDays: Collection<StoredTagDay>;
  readonly tagHours: Collection<StoredTagHour>;
  /** Sums entries of the ledger instead, for sessions and users. */
  readonly ofLedger: (account: string, query: UsageQuery) => Promise<UsageRow[]>;
  readonly lastClosed: () => Promise<string>;
}

const negated = (field: string) => ({ $multiply: [-1, `$${field}`] });
/**
 * Subtracts the calls with tags, whose row is that of `anyTag`, from those of the rows by key, model and endpoint. What
 * remains has no tag.
 */
const subtractTagged = {
  $replaceWith: {
    $cond: [
      { $eq: ["$tag", anyTag] },
      {
        $mergeObjects: [
          "$$ROOT",
          { tag: null, ...Object.fromEntries([...summed, "entries"].map((field) => [field, negated(field)])) },
          {
            latency: {
              $arrayToObject: {
                $map: {
                  input: { $objectToArray: { $ifNull: ["$latency", {}] } },
                  in: { k: "$$this.k", v: { $multiply: [-1, "$$this.v"] } },
                },
              },
            },
          },
        ],
      },
      "$$ROOT",
    ],
  },
};

export const withDay = { $set: { day: { $substrBytes: ["$hour", 0, "2026-11-23".length] } } };

/** The first day of a period that is not final, and for which there are only hours. `closed` is the last final day. */
export const firstOpenDay = (closed: string, from: string): string => (closed >= from ? daysLater(closed, 1) : from);

/** Sums rows of days and hours, whose number depends on keys, models, endpoints and tags rather than on calls. */
export function createUsageViews({ days, hours, tagDays, tagHours, ofLedger, lastClosed }: Deps) {
  const plainRows = { days, hours } as const;
  const tagRows = { days: tagDays, hours: tagHours } as const;
  type Rows = typeof plainRows | typeof tagRows;

  /** Matches the hours from the first to the last one, which may be given as their day. */
  const inHours = (from: string, to: string) => ({ hour: { $gte: from, $lt: `${to}~` } });

  /** Matches the rows of a period: the days that are final, and hours for the others. */
  async function periodOf({ from, to, groupBy }: UsageQuery): Promise<{ days?: object; hours: object }> {
    if (from.includes("T") || groupBy.includes("hour")) return { hours: inHours(from, to) };
    const open = firstOpenDay(await lastClosed(), from);
    return { days: { day: { $gte: from, $lte: to, $lt: open } }, hours: inHours(firstHourOf(open), to) };
  }

  /** Throws a 400 that names what was asked for if there are more rows than MongoDB can add in about a second. */
  async function assertFew(rows: Rows, ofDays: object | undefined, ofHours: object, max: number, param: string) {
    const limit = max + 1;
    const inDays = ofDays ? await (rows.days as Collection<object>).countDocuments(ofDays, { limit }) : 0;
    if (inDays + (await (rows.hours as Collection<object>).countDocuments(ofHours, { limit })) <= max) return;
    throw invalidValue(
      param,
      `${param}: there are more than ${max} stored sums; ask for fewer days, a key or a model.`,
    );
  }

  return async (account: string, query: UsageQuery): Promise<UsageRow[]> => {
    if (isOfLedger(query)) return ofLedger(account, query);
    const { groupBy, key, model, endpoint, tag, latency = false } = query;
    const groups = usageGroups.filter((field) => groupBy.includes(field));
    const isByTag = groups.includes("tag");
    const owned = { account, ...given({ key, model, endpoint }) };
    const period = await periodOf(query);
    const ofHours = { ...owned, ...period.hours };
    const ofDays = period.days && { ...owned, ...period.days };
    const rows: Rows = isByTag || tag !== undefined ? tagRows : plainRows;
    const byTag = given({ tag });
    if (latency || rows === tagRows) {
      const [max, param] = latency ? ([maxTimedRows, "latency"] as const) : ([maxTagRows, "group_by"] as const);
      await assertFew(rows, ofDays && { ...ofDays, ...byTag }, { ...ofHours, ...byTag }, max, param);
    }
    const more = (of: Rows, filter: object) =>
      ofDays
        ? [{ $unionWith: { coll: of.days.collectionName, pipeline: [{ $match: { ...ofDays, ...filter } }] } }]
        : [];
    const untagged = isByTag &&
      tag === undefined && [
        subtractTagged,
        { $unionWith: { coll: hours.collectionName, pipeline: [{ $match: ofHours }, withDay] } },
        ...more(plainRows, {}),
      ];
    const names = [...summed, "entries"];
    const group = Object.fromEntries(groups.map((field) => [field, { $ifNull: [`$${field}`, null] }]));
    const sums = Object.fromEntries(names.map((field) => [field, { $sum: `$${field}` }]));
    const pipeline = [
      { $match: { ...ofHours, ...byTag } },
      withDay,
      ...more(rows, byTag),
      ...(untagged || []),
      ...(latency ? sumRows(group, names) : [{ $group: { _id: group, ...sums } }]),
      ...(untagged ? [{ $match: { $or: [{ "_id.tag": { $ne: null } }, { entries: { $gt: 0 } }] } }] : []),
      { $sort: { _id: 1 } },
      { $limit: query.limit },
    ];
    const found = (rows.hours as Collection<object>).aggregate<FoundUsage>(pipeline, latency ? timed : {});
    return (await found.toArray()).map(toRow);
  };
}
