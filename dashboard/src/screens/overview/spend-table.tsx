import type { UsageRow } from "../../api/usage.ts";
import { type Column, Table } from "../../components/table.tsx";
import { count, dayLabel } from "../../lib/format.ts";
import type { Slot, Stacked } from "../../lib/stacked.ts";
import { fromNano } from "../../lib/usd.ts";

const callsOf = (rows: readonly UsageRow[]) => rows.reduce((sum, { calls }) => sum + calls, 0);

/** The numbers of the chart, newest day first, without days that had no calls. */
export function SpendTable({ spend }: { readonly spend: Stacked<UsageRow> }) {
  const columns: readonly Column<Slot<UsageRow>>[] = [
    { header: "Day (UTC)", cell: ({ time }) => <time dateTime={time}>{dayLabel(time)}</time> },
    ...spend.series.map(({ name }) => ({
      header: name,
      usd: ({ values }: Slot<UsageRow>) => fromNano(values[name] ?? 0n),
    })),
    { header: "Calls", numeric: true, cell: ({ rows }) => count(callsOf(rows)) },
    { header: "Total", usd: ({ total }) => fromNano(total) },
  ];
  const calls = callsOf(spend.slots.flatMap(({ rows }) => rows));
  const sums = spend.series.map(({ total }) => fromNano(total));
  const footer = ["Sum", ...sums, count(calls), fromNano(spend.total)];
  const days = spend.slots.filter(({ rows }) => callsOf(rows) > 0).toReversed();
  return <Table caption="Spend by day" columns={columns} rows={days} rowKey={({ time }) => time} footer={footer} />;
}
