import { Money } from "../../components/money.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { count, dayLabel } from "../../lib/format.ts";
import type { Spend, SpendDay } from "../../lib/spend.ts";

/** The numbers of the chart, newest day first, without days that had no calls. */
export function SpendTable({ spend }: { readonly spend: Spend }) {
  const columns: readonly Column<SpendDay>[] = [
    { header: "Day (UTC)", cell: ({ day }) => <time dateTime={day}>{dayLabel(day)}</time> },
    ...spend.series.map(({ name }) => ({
      header: name,
      numeric: true,
      cell: ({ usd }: SpendDay) => <Money usd={usd[name] ?? "0"} />,
    })),
    { header: "Calls", numeric: true, cell: ({ calls }) => count(calls) },
    { header: "Total", numeric: true, cell: ({ totalUsd }) => <Money usd={totalUsd} /> },
  ];
  const footer = [
    "Sum",
    ...spend.series.map(({ name, totalUsd }) => <Money key={name} usd={totalUsd} />),
    count(spend.calls),
    <Money key="total" usd={spend.totalUsd} />,
  ];
  const days = spend.days.filter(({ calls }) => calls > 0).toReversed();
  return <Table caption="Spend by day" columns={columns} rows={days} rowKey={({ day }) => day} footer={footer} />;
}
