import type { UsageRow } from "../api/usage.ts";
import { daysBefore } from "./format.ts";
import { approximateUsd, sumUsd, toNano } from "./usd.ts";

export interface Series {
  readonly name: string;
  readonly totalUsd: string;
}

export interface SpendDay {
  readonly day: string;
  /** Exact amounts by the name of a series. */
  readonly usd: Readonly<Record<string, string>>;
  readonly totalUsd: string;
  readonly calls: number;
}

export interface Spend {
  readonly series: readonly Series[];
  readonly days: readonly SpendDay[];
  readonly totalUsd: string;
  readonly calls: number;
}

const shownSeries = 5;
const otherSeries = "Other";

/** One row for each day, including days without calls. Series beyond the largest are summed as other. */
export function spendByDay(
  rows: readonly UsageRow[],
  group: "model" | "key",
  nameOf: (value: string) => string,
  { from, to }: { readonly from: string; readonly to: string },
): Spend {
  const names = [...new Set(rows.map((row) => nameOf(row[group] ?? "unknown")))];
  const costOf = (matching: readonly UsageRow[]) => sumUsd(matching.map(({ cost_usd }) => cost_usd));
  const named = (row: UsageRow) => nameOf(row[group] ?? "unknown");
  const ranked = names
    .map((name): Series => ({ name, totalUsd: costOf(rows.filter((row) => named(row) === name)) }))
    .toSorted((one, other) => Number(toNano(other.totalUsd) - toNano(one.totalUsd)));
  const shown = ranked.slice(0, shownSeries);
  const rest = ranked.slice(shownSeries);
  const series =
    rest.length > 0 ? [...shown, { name: otherSeries, totalUsd: sumUsd(rest.map(({ totalUsd }) => totalUsd)) }] : shown;
  const isShown = new Set(shown.map(({ name }) => name));
  const seriesOf = (row: UsageRow) => (isShown.has(named(row)) ? named(row) : otherSeries);

  const days: SpendDay[] = [];
  for (let day = to; day >= from; day = daysBefore(day, 1)) {
    const ofDay = rows.filter((row) => row.day === day);
    days.unshift({
      day,
      usd: Object.fromEntries(series.map(({ name }) => [name, costOf(ofDay.filter((row) => seriesOf(row) === name))])),
      totalUsd: costOf(ofDay),
      calls: ofDay.reduce((sum, { calls }) => sum + calls, 0),
    });
  }
  return { series, days, totalUsd: costOf(rows), calls: rows.reduce((sum, { calls }) => sum + calls, 0) };
}

/** Bar heights. */
export const heights = ({ day, usd }: SpendDay): Record<string, string | number> => ({
  day,
  ...Object.fromEntries(Object.entries(usd).map(([name, amount]) => [name, approximateUsd(amount)])),
});
