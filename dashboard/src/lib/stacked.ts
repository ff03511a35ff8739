import type { ReactNode } from "react";

/** Amounts over time as stacked series. Amounts are integers: counts, or USD in nano-USD. */

export interface Series {
  readonly name: string;
  readonly total: bigint;
}

/** A day or an hour. */
export interface Slot<Row> {
  readonly time: string;
  readonly rows: readonly Row[];
  /** Amounts by the name of a series. */
  readonly values: Readonly<Record<string, bigint>>;
  readonly total: bigint;
}

export interface Stacked<Row> {
  readonly series: readonly Series[];
  readonly slots: readonly Slot<Row>[];
  readonly total: bigint;
}

/** Formats of a quantity. */
export interface Measure {
  readonly shown: (amount: bigint) => ReactNode;
  /** Formats a value of the axis, in the unit of `toNumber`. */
  readonly axis: (value: number) => string;
  readonly toNumber: (amount: bigint) => number;
}

interface Reading<Row> {
  /** All slots in order, including those without rows. */
  readonly times: readonly string[];
  readonly timeOf: (row: Row) => string | undefined;
  readonly nameOf: (row: Row) => string;
  readonly valueOf: (row: Row) => bigint;
}

const shownSeries = 5;
export const otherSeries = "Other";

/** Adds up rows by time and name. Series beyond the largest are summed as other. */
export function stacked<Row>(rows: readonly Row[], { times, timeOf, nameOf, valueOf }: Reading<Row>): Stacked<Row> {
  const sum = (of: readonly Row[]) => of.reduce((total, row) => total + valueOf(row), 0n);
  const totals = [...Map.groupBy(rows, nameOf)].map(([name, of]) => ({ name, total: sum(of) }));
  const ranked = totals.toSorted((one, other) => (one.total < other.total ? 1 : -1));
  const [shown, rest] = [ranked.slice(0, shownSeries), ranked.slice(shownSeries)];
  const other = { name: otherSeries, total: rest.reduce((total, each) => total + each.total, 0n) };
  const series = rest.length > 0 ? [...shown, other] : shown;
  const isShown = new Set(shown.map(({ name }) => name));
  const byTime = Map.groupBy(rows, timeOf);
  const slots = times.map((time) => {
    const of = byTime.get(time) ?? [];
    const values: Record<string, bigint> = Object.fromEntries(series.map(({ name }) => [name, 0n]));
    for (const row of of) {
      const name = isShown.has(nameOf(row)) ? nameOf(row) : otherSeries;
      values[name] = (values[name] ?? 0n) + valueOf(row);
    }
    return { time, rows: of, values, total: sum(of) };
  });
  return { series, slots, total: sum(rows) };
}
