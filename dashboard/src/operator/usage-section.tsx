import { useQuery } from "@tanstack/react-query";
import { lazy } from "react";
import { Card, Figure } from "../components/card.tsx";
import { ChartOrTable } from "../components/chart-or-table.tsx";
import { countMeasure, usdMeasure } from "../components/measures.tsx";
import { Money } from "../components/money.tsx";
import { QueryView } from "../components/query-view.tsx";
import { Skeleton } from "../components/skeleton.tsx";
import { StackedTable } from "../components/stacked-table.tsx";
import { SwitchButtons } from "../components/switch-buttons.tsx";
import { useChoice } from "../components/use-choice.ts";
import { count, dayLabel, share } from "../lib/format.ts";
import { stacked } from "../lib/stacked.ts";
import { timesBetween } from "../lib/usage.ts";
import { fromNano, toNano } from "../lib/usd.ts";
import { loaded } from "../loaded.ts";
import { type ServiceUsage, type ServiceUsageFilter, serviceUsageQuery } from "./api.ts";
import { percent } from "./overview-parts.tsx";

const StackedChart = lazy(loaded(() => import("../charts/stacked-chart.tsx")));

const quantities = {
  margin: usdMeasure<ServiceUsage>("Margin", ({ margin_usd }) => margin_usd),
  charged: usdMeasure<ServiceUsage>("Charged", ({ cost_usd }) => cost_usd),
  upstream: usdMeasure<ServiceUsage>("Upstream cost", ({ upstream_cost_usd }) => upstream_cost_usd),
  calls: countMeasure<ServiceUsage>("Calls", ({ calls }) => calls),
  failed: countMeasure<ServiceUsage>("Failed", ({ failed }) => failed),
} as const;
const options = (Object.keys(quantities) as (keyof typeof quantities)[]).map((value) => ({
  value,
  label: quantities[value].label,
}));

export interface Sums extends Pick<ServiceUsage, "calls" | "failed" | "input_tokens" | "output_tokens"> {
  readonly charged: bigint;
  readonly upstream: bigint;
  readonly unpriced: bigint;
  readonly margin: bigint;
}

export const sumsOf = (rows: readonly ServiceUsage[]): Sums =>
  rows.reduce<Sums>(
    (sum, row) => ({
      calls: sum.calls + row.calls,
      failed: sum.failed + row.failed,
      input_tokens: sum.input_tokens + row.input_tokens,
      output_tokens: sum.output_tokens + row.output_tokens,
      charged: sum.charged + toNano(row.cost_usd),
      upstream: sum.upstream + toNano(row.upstream_cost_usd),
      unpriced: sum.unpriced + toNano(row.unpriced_usd),
      margin: sum.margin + toNano(row.margin_usd),
    }),
    { calls: 0, failed: 0, input_tokens: 0, output_tokens: 0, charged: 0n, upstream: 0n, unpriced: 0n, margin: 0n },
  );

/** The margin as a part of the charges whose upstream cost is known. */
export const marginShare = ({ charged, unpriced, margin }: Sums): string =>
  charged === unpriced ? "–" : share(Number(margin) / Number(charged - unpriced));

const usd = (nanoUsd: bigint) => <Money usd={fromNano(nanoUsd)} />;

interface Props {
  readonly filter: ServiceUsageFilter;
  /** Stacks the chart by model. */
  readonly byModel: boolean;
}

/** The sums of a period, and a chart of one quantity by day. */
export function UsageSection({ filter, byModel }: Props) {
  const { from, to } = filter;
  const query = useQuery(serviceUsageQuery({ ...filter, groupBy: byModel ? "day,model" : "day" }));
  const [quantity, setQuantity] = useChoice("show", options, "margin");
  const measure = quantities[quantity];
  const title = `${measure.label} by day`;
  return (
    <QueryView query={query} skeleton={<Skeleton rows={2} className="h-60" />}>
      {({ data: rows }) => {
        const sums = sumsOf(rows);
        const data = stacked(rows, {
          times: timesBetween(from, to),
          timeOf: ({ day }) => day,
          nameOf: ({ model }) => (byModel ? (model ?? "Uploads, and calls of unknown models") : "All"),
          valueOf: measure.valueOf,
        });
        return (
          <>
            <div className="grid grid-cols-2 gap-4 lg:grid-cols-4">
              <Figure label="Charged" note="Less refunds">
                {usd(sums.charged)}
              </Figure>
              <Figure
                label="Upstream cost"
                note={
                  sums.unpriced === 0n ? "Known for all calls" : <>Unknown for {usd(sums.unpriced)} of the charges</>
                }
              >
                {usd(sums.upstream)}
              </Figure>
              <Figure label="Margin" note={`${marginShare(sums)} of the charges whose upstream cost is known`}>
                {usd(sums.margin)}
              </Figure>
              <Figure label="Calls" note={`${count(sums.failed)} failed, ${percent(sums.failed, sums.calls)} %`}>
                {count(sums.calls)}
              </Figure>
            </div>
            <Card>
              <ChartOrTable
                title={title}
                controls={<SwitchButtons label="Quantity" value={quantity} options={options} onChange={setQuantity} />}
                chart={<StackedChart data={data} measure={measure} timeLabel={dayLabel} />}
                table={<StackedTable title={title} header="Day (UTC)" data={data} shown={measure.shown} />}
              />
            </Card>
          </>
        );
      }}
    </QueryView>
  );
}
