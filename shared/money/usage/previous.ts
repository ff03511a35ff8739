import { dayMs } from "#platform/clock";
import { dayOf, hourMs, hourOf, startOf, startOfHour } from "./dates.ts";
import { type UsageGroup, type UsageQuery, type UsageRow, type UsageSums, usageGroups } from "./views.ts";

const none: UsageSums = {
  calls: 0,
  failed: 0,
  cancelled: 0,
  inputTokens: 0,
  outputTokens: 0,
  cachedTokens: 0,
  units: 0,
  costNanoUsd: 0n,
  savedNanoUsd: 0n,
};

export type ComparedRow = UsageRow & { readonly previous: UsageSums };

type Period = Pick<UsageQuery, "from" | "to">;

/** The length of a period of days or hours. */
const lengthMs = ({ from, to }: Period) =>
  from.includes("T") ? startOfHour(to) - startOfHour(from) + hourMs : startOf(to) - startOf(from) + dayMs;

const movedDay = (day: string, ms: number) => dayOf(startOf(day) + ms);
const movedHour = (hour: string, ms: number) => hourOf(startOfHour(hour) + ms);
const moved = (time: string, ms: number) => (time.includes("T") ? movedHour(time, ms) : movedDay(time, ms));

/** The period of the same length that ends where this one begins. */
export function previousPeriod({ from, to }: Period): Period {
  const ms = -lengthMs({ from, to });
  return { from: moved(from, ms), to: moved(to, ms) };
}

const groupOf = (row: UsageRow) =>
  Object.fromEntries(
    usageGroups.flatMap((group) => (row[group] === undefined ? [] : [[group, row[group]]])),
  ) as Partial<Record<UsageGroup, string | null>>;

const nameOf = (row: UsageRow) => JSON.stringify(usageGroups.map((group) => row[group]));

/** The order of MongoDB: null first. */
function compare(one: UsageRow, other: UsageRow): number {
  const differs = usageGroups.find((group) => one[group] !== other[group]);
  if (differs === undefined) return 0;
  return (one[differs] ?? "") < (other[differs] ?? "") ? -1 : 1;
}

/** Returns each group of either period, with its sums in both. A previous day or hour is beside the one in its place. */
export const withPrevious =
  (usage: (account: string, query: UsageQuery) => Promise<UsageRow[]>) =>
  async (account: string, query: UsageQuery): Promise<ComparedRow[]> => {
    const zero = { ...none, ...(query.latency && { firstTokenP50Ms: null, firstTokenP95Ms: null }) };
    const [current, earlier] = await Promise.all([
      usage(account, query),
      usage(account, { ...query, ...previousPeriod(query) }),
    ]);
    const ms = lengthMs(query);
    const previous = new Map(
      earlier.map((row) => {
        const { day, hour } = row;
        const now = { ...row, ...(day && { day: movedDay(day, ms) }), ...(hour && { hour: movedHour(hour, ms) }) };
        return [nameOf(now), { row, now }] as const;
      }),
    );
    const known = new Set(current.map(nameOf));
    const gone = [...previous].flatMap(([name, { now }]) => (known.has(name) ? [] : [{ ...groupOf(now), ...zero }]));
    return [...current, ...gone].toSorted(compare).map((row) => ({
      ...row,
      previous: previous.get(nameOf(row))?.row ?? zero,
    }));
  };
