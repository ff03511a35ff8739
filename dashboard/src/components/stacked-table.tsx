import type { ReactNode } from "react";
import { timeLabel } from "../lib/format.ts";
import type { Stacked } from "../lib/stacked.ts";
import { Table } from "./table.tsx";

interface Props<Row> {
  readonly title: string;
  readonly header: string;
  readonly data: Stacked<Row>;
  readonly shown: (amount: bigint) => ReactNode;
}

/** A UTC day or hour. */
export const SlotTime = ({ time }: { readonly time: string }) => (
  <time dateTime={time} className="whitespace-nowrap">
    {timeLabel(time)}
  </time>
);

/** The numbers of a stacked chart, newest first, without times that had no calls. */
export const StackedTable = <Row,>({ title, header, data: { series, slots }, shown }: Props<Row>) => (
  <Table
    caption={title}
    rows={slots.filter(({ rows }) => rows.length > 0).toReversed()}
    rowKey={({ time }) => time}
    columns={[
      { header, cell: ({ time }) => <SlotTime time={time} /> },
      ...series.map(({ name }) => ({
        header: name,
        numeric: true,
        cell: ({ values }: Stacked<Row>["slots"][number]) => shown(values[name] ?? 0n),
      })),
      { header: "Sum", numeric: true, cell: ({ total }) => shown(total) },
    ]}
  />
);
