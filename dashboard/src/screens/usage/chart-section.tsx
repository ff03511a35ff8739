import { useQuery } from "@tanstack/react-query";
import { lazy } from "react";
import { type UsageRow, usageQuery } from "../../api/usage.ts";
import { Card } from "../../components/card.tsx";
import { ChartOrTable } from "../../components/chart-or-table.tsx";
import { measures } from "../../components/measures.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { SlotTime, StackedTable } from "../../components/stacked-table.tsx";
import { SwitchButtons } from "../../components/switch-buttons.tsx";
import { Table } from "../../components/table.tsx";
import { duration, timeLabel } from "../../lib/format.ts";
import { stacked } from "../../lib/stacked.ts";
import { shown, type UsageView } from "../../lib/usage.ts";
import { loaded } from "../../loaded.ts";

const StackedChart = lazy(loaded(() => import("../../charts/stacked-chart.tsx")));
const LatencyChart = lazy(loaded(() => import("../../charts/latency-chart.tsx")));

interface Props {
  readonly view: UsageView;
  readonly nameOf: (row: UsageRow) => string;
  readonly onShow: (show: UsageView["show"]) => void;
}

const titles = { cost: "Cost", calls: "Calls", tokens: "Tokens", errors: "Errors", latency: "Time to first token" };

const timeOf = ({ day, hour }: UsageRow) => hour ?? day;

/** One quantity over time, stacked by group. Latencies cannot be stacked, so they are those of all groups together. */
export function ChartSection({ view, nameOf, onShow }: Props) {
  const { show, interval, by, from, to, filters, times } = view;
  const isStacked = show !== "latency" && by !== "time";
  const groupBy = isStacked ? [interval, by] : [interval];
  const query = useQuery(usageQuery({ from, to, ...filters, groupBy, latency: show === "latency" }));
  const title = `${titles[show]} by ${interval}`;
  const controls = <SwitchButtons label="Quantity" value={show} options={shown} onChange={onShow} />;
  const header = interval === "hour" ? "Hour (UTC)" : "Day (UTC)";
  return (
    <Card>
      <QueryView query={query} skeleton={<Skeleton rows={1} className="h-80" />}>
        {(rows) => {
          if (show === "latency") {
            const found = new Map(rows.map((row) => [timeOf(row), row]));
            const slots = times.map((time) => ({ time, row: found.get(time) }));
            return (
              <ChartOrTable
                title={title}
                controls={controls}
                chart={<LatencyChart slots={slots} />}
                table={<LatencyTable title={title} header={header} slots={slots} />}
              />
            );
          }
          const measure = measures[show];
          const name = (row: UsageRow) => (isStacked ? nameOf(row) : "All");
          const data = stacked(rows, { times, timeOf, nameOf: name, valueOf: measure.valueOf });
          return (
            <ChartOrTable
              title={title}
              controls={controls}
              chart={<StackedChart data={data} measure={measure} timeLabel={timeLabel} />}
              table={<StackedTable title={title} header={header} data={data} shown={measure.shown} />}
            />
          );
        }}
      </QueryView>
    </Card>
  );
}

interface TableProps {
  readonly title: string;
  readonly header: string;
}

type LatencySlot = { readonly time: string; readonly row: UsageRow | undefined };
const ms = (value: number | null | undefined) => (value == null ? "–" : duration(value));

const LatencyTable = ({ title, header, slots }: TableProps & { readonly slots: readonly LatencySlot[] }) => (
  <Table
    caption={title}
    rows={slots.filter(({ row }) => row !== undefined).toReversed()}
    rowKey={({ time }) => time}
    columns={[
      { header, cell: ({ time }) => <SlotTime time={time} /> },
      { header: "First token p50", numeric: true, cell: ({ row }) => ms(row?.first_token_p50_ms) },
      { header: "First token p95", numeric: true, cell: ({ row }) => ms(row?.first_token_p95_ms) },
    ]}
  />
);
