import { type Column, Table } from "../../components/table.tsx";
import { count, dayLabel } from "../../lib/format.ts";
import type { Spend, SpendDay } from "../../lib/spend.ts";

/** The numbers of the chart, newest day first, without days that had no calls. */
export function SpendTable({ spend }: { readonly spend: Spend }) {
  const columns: readonly Column<SpendDay>[] = [
    { header: "Day (UTC)", cell: ({ day }) => <time dateTime={day}>{dayLabel(day)}</time> },
    ...spend.series.map(({ name }) => ({
      header: name,
      usd: ({ usd }: SpendDay) => usd[name] ?? "0",
    })),
    { header: "Calls", numeric: true, cell: ({ calls }) => count(calls) },
    { header: "Total", usd: ({ totalUsd }) => totalUsd },
  ];
  const footer = ["Sum", ...spend.series.map((each) => each.totalUsd), count(spend.calls), spend.totalUsd];
  const days = spend.days.filter(({ calls }) => calls > 0).toReversed();
  return <Table caption="Spend by day" columns={columns} rows={days} rowKey={({ day }) => day} footer={footer} />;
}
