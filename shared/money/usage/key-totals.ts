import { type Collection, Schema } from "mongoose";
import { type DocumentOf, longRunning, openCollection, scatter } from "#platform/mongo/collection";
import type { Uses } from "#platform/uses";
import { dayOf, daysLater, firstHourOf, monthOfDay, startOf } from "./dates.ts";
import type { StoredUsageDay, StoredUsageHour } from "./rows.ts";

/** The charges of a key minus refunds: today, this month, and in total. Days and months are in UTC. */
export interface KeyUsage {
  readonly dayNanoUsd: bigint;
  readonly monthNanoUsd: bigint;
  readonly totalNanoUsd: bigint;
}

interface ClosedUsage {
  readonly nanoUsd: bigint;
  /** Unix milliseconds, by key. */
  readonly until: ReadonlyMap<string, number>;
}

const definition = {
  /** Account, key and month. */
  _id: { type: Schema.Types.Mixed, required: true },
  account: { type: String, required: true },
  key: { type: String, required: true },
  month: { type: String, required: true },
  /** The last counted day. */
  through: { type: String, required: true },
  cost: { type: BigInt, required: true },
} as const;
type StoredMonth = DocumentOf<typeof definition>;

/**
 * The collection `keyMonths`: the sums of a key's final days by month, each with its last day. Together with the days
 * after that one, a total takes a few dozen documents, however old the key is. A sum is replaced, never added to.
 */
export function createKeyTotals(
  deps: Uses<"mongo" | "clock"> & { days: Collection<StoredUsageDay>; hours: Collection<StoredUsageHour> },
) {
  const { mongo, days, hours, clock } = deps;
  const { collection } = openCollection<StoredMonth>(mongo, "keyMonths", definition);

  /** Sums the month again through this day, which is final like those before. */
  async function addDay(day: string): Promise<void> {
    const month = monthOfDay(day);
    const through = { $gte: { day: `${month}-01` }, $lt: { day: daysLater(day, 1) } };
    const pipeline = [
      { $match: { _id: through, key: { $exists: true } } },
      { $group: { _id: { account: "$account", key: "$key", month: { $literal: month } }, cost: { $sum: "$cost" } } },
      { $set: { account: "$_id.account", key: "$_id.key", month, through: day } },
      {
        $merge: {
          into: "keyMonths",
          whenMatched: [{ $replaceWith: { $cond: [{ $gt: ["$through", day] }, "$$ROOT", "$$new"] } }],
          whenNotMatched: "insert",
        },
      },
    ];
    const options = { ...longRunning, allowDiskUse: true, readConcern: { level: "majority" } } as const;
    await days.aggregate(pipeline, { ...options, ...scatter("usage days") }).toArray();
  }

  /** The result is at most a minute old. */
  async function usageOfKey(account: string, key: string): Promise<KeyUsage> {
    const today = dayOf(clock.now());
    const months = await collection.find({ account, key }).toArray();
    // Read after the months. Anything that a month counts in the meantime is after its day as it was read.
    const counted = months.reduce((last, { through }) => (through > last ? through : last), "");
    const monthStart = `${monthOfDay(today)}-01`;
    const since = counted < monthStart ? counted : daysLater(monthStart, -1);
    const projection = { day: 1, hour: 1, cost: 1 } as const;
    const [closed, open] = await Promise.all([
      days.find({ account, key, day: { $gt: since, $lte: counted } }, { projection }).toArray(),
      hours
        .find(
          { account, key, hour: { $gte: counted === "" ? "" : firstHourOf(daysLater(counted, 1)) } },
          { projection },
        )
        .toArray(),
    ]);
    const usage = { dayNanoUsd: 0n, monthNanoUsd: 0n, totalNanoUsd: 0n };
    for (const { cost } of months) usage.totalNanoUsd += cost;
    for (const { day, cost } of [...closed, ...open.map(({ hour, cost }) => ({ day: hour.slice(0, 10), cost }))]) {
      if (day > counted) usage.totalNanoUsd += cost;
      if (day >= monthStart) usage.monthNanoUsd += cost;
      if (day === today) usage.dayNanoUsd += cost;
    }
    return usage;
  }

  /** Sums the final days of keys since the start of a day. Also returns the start of each key's first missing day. */
  async function closedSince(account: string, keys: readonly string[], since: Date): Promise<ClosedUsage> {
    const key = { $in: [...keys] };
    const months = await collection.find({ account, key }).toArray();
    const counted = new Map(keys.map((each) => [each, ""]));
    for (const { key, through } of months) if (through > (counted.get(key) ?? "")) counted.set(key, through);
    const isCounted = ({ key, day }: { key?: string | null; day: string }) => day <= (counted.get(key ?? "") ?? "");
    const untilOf = (through: string) =>
      through === "" ? since.getTime() : Math.max(since.getTime(), startOf(daysLater(through, 1)));
    const first = monthOfDay(dayOf(since.getTime()));
    // Complete months use their sums, the rest of the first month its days.
    const from = since.getTime() === startOf(`${first}-01`) ? "" : dayOf(since.getTime());
    const whole = months.filter(({ month }) => (from === "" ? month >= first : month > first));
    const rows =
      from === ""
        ? []
        : await days
            .find(
              { account, key, day: { $gte: from, $lt: `${first}-32` } },
              { projection: { key: 1, day: 1, cost: 1 } },
            )
            .toArray();
    return {
      nanoUsd: [...whole, ...rows.filter(isCounted)].reduce((sum, { cost }) => sum + cost, 0n),
      until: new Map([...counted].map(([each, through]) => [each, untilOf(through)])),
    };
  }

  return { addDay, usageOfKey, closedSince };
}

export type KeyTotals = ReturnType<typeof createKeyTotals>;
