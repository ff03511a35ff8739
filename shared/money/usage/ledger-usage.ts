import { invalidValue } from "#errors";
import { groupCommit } from "#platform/concurrency/group-commit";
import type { MoneyDeps } from "../deps.ts";
import { accountIndex, keyIndex, sessionIndex, tagIndex, userIndex } from "../ledger.ts";
import { dayOf, daysLater, hourMs, startOf, startOfHour } from "./dates.ts";
import { charges, eachTag, entrySums, refundedCalls } from "./entries.ts";
import { sumEntries } from "./latency.ts";
import {
  type FoundUsage,
  given,
  toRow,
  type UsageGroup,
  type UsageQuery,
  type UsageRow,
  usageGroups,
} from "./views.ts";

/** Adding so many takes MongoDB up to a second, or three by tag too. */
export const maxLedgerCalls = 50_000;
/** Older entries may be in the archive. */
export const maxLedgerDays = 31;
/** The query also ends on the server, so that retried views do not pile up. */
const maxTimeMS = 5_000;

const timeIn = (format: string) => ({ $dateToString: { date: "$createdAt", format } });
const valueOf: Readonly<Record<UsageGroup, unknown>> = {
  day: timeIn("%Y-%m-%d"),
  hour: timeIn("%Y-%m-%dT%H"),
  model: "$request.model",
  key: "$request.key",
  endpoint: "$request.endpoint",
  tag: "$tag",
  session: "$request.sessionId",
  user: "$request.user",
};

/** The index that leaves the fewest entries. */
function indexFor({ sessionId, user, tag, key }: UsageQuery) {
  if (sessionId !== undefined) return sessionIndex;
  if (user !== undefined) return userIndex;
  if (tag !== undefined) return tagIndex;
  return key === undefined ? accountIndex : keyIndex;
}

/** Unix milliseconds. */
function spanOf({ from, to }: UsageQuery): { from: number; until: number } {
  if (from.includes("T")) return { from: startOfHour(from), until: startOfHour(to) + hourMs };
  return { from: startOf(from), until: startOf(daysLater(to, 1)) };
}

/**
 * Sums a bounded number of ledger entries by anything, such as sessions and users. Nothing is stored for these, so no
 * number of them takes space. An account has one query at a time in this process, and equal ones that wait are merged, so
 * that it cannot keep MongoDB busy. Throws 400 for too long a period or too many entries.
 */
export function createLedgerUsage(deps: MoneyDeps) {
  const sum = sumLedger(deps);
  const inTurn = groupCommit<UsageQuery, UsageRow[]>({
    limit: 1,
    write: (account, queries) => Promise.all(queries.map((query) => sum(account, query))),
  });
  return (account: string, query: UsageQuery): Promise<UsageRow[]> => inTurn(account, JSON.stringify(query), query);
}

const sumLedger =
  ({ ledger: { collection } }: MoneyDeps) =>
  async (account: string, query: UsageQuery): Promise<UsageRow[]> => {
    const { groupBy, key, model, endpoint, tag, sessionId, user, limit } = query;
    const { from, until } = spanOf(query);
    if (daysLater(dayOf(from), maxLedgerDays) < dayOf(until))
      throw invalidValue("from", `from: sums by session or user are of at most ${maxLedgerDays} days.`);
    const createdAt = { $gte: new Date(from), $lt: new Date(until) };
    const filters = given({ key, model, endpoint, sessionId, user, tags: tag });
    const ofCalls = Object.fromEntries(Object.entries(filters).map(([name, value]) => [`request.${name}`, value]));
    const hint = indexFor(query);
    const indexed = Object.fromEntries(Object.entries(ofCalls).filter(([name]) => name in hint));
    const count = { hint, limit: maxLedgerCalls + 1, maxTimeMS };
    if ((await collection.countDocuments({ account, ...indexed, createdAt } as object, count)) > maxLedgerCalls)
      throw invalidValue(
        "from",
        `from: there are more than ${maxLedgerCalls} calls; ask for a shorter period or a key.`,
      );

    const groups = usageGroups.filter((field) => groupBy.includes(field));
    const group = Object.fromEntries(groups.map((field) => [field, { $ifNull: [valueOf[field], null] }]));
    const byTag = groups.includes("tag") ? [...eachTag(), ...(tag === undefined ? [] : [{ $match: { tag } }])] : [];
    const pipeline = [
      { $match: { account, ...ofCalls, createdAt, kind: charges } },
      { $unionWith: { coll: "ledger", pipeline: [...refundedCalls({ account, createdAt }), { $match: ofCalls }] } },
      ...byTag,
      ...(query.latency ? sumEntries(group, entrySums) : [{ $group: { _id: group, ...entrySums } }]),
      { $sort: { _id: 1 } },
      { $limit: limit },
    ];
    const found = collection.aggregate<FoundUsage>(pipeline, { hint, maxTimeMS, allowDiskUse: false });
    return (await found.toArray()).map(toRow);
  };
