import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { lazy } from "react";
import { useKeyNames } from "../../api/keys.ts";
import { usageQuery } from "../../api/usage.ts";
import { Card } from "../../components/card.tsx";
import { ChartOrTable } from "../../components/chart-or-table.tsx";
import { cost } from "../../components/measures.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { SwitchButtons } from "../../components/switch-buttons.tsx";
import { useChoice } from "../../components/use-choice.ts";
import { dayLabel, daysBefore } from "../../lib/format.ts";
import { stacked } from "../../lib/stacked.ts";
import { useToday } from "../../lib/time.ts";
import { timesBetween } from "../../lib/usage.ts";
import { loaded } from "../../loaded.ts";
import { SpendTable } from "./spend-table.tsx";

const StackedChart = lazy(loaded(() => import("../../charts/stacked-chart.tsx")));

const groups = [
  { value: "model", label: "By model" },
  { value: "key", label: "By key" },
] as const;
const spans = [
  { value: "7", label: "7 days" },
  { value: "30", label: "30 days" },
  { value: "90", label: "90 days" },
] as const;

export function SpendSection() {
  const [by, setBy] = useChoice("by", groups, "model");
  const [span, setSpan] = useChoice("days", spans, "30");
  const to = useToday();
  const from = daysBefore(to, Number(span) - 1);
  const usage = useQuery(usageQuery({ from, to, groupBy: ["day", by] }));
  const nameOf = useKeyNames(by === "key");
  const controls = (
    <>
      <Link to="/usage" className="text-accent hover:underline">
        All usage
      </Link>
      <SwitchButtons label="Group" value={by} options={groups} onChange={setBy} />
      <SwitchButtons label="Days" value={span} options={spans} onChange={setSpan} />
    </>
  );
  return (
    <Card>
      <QueryView query={usage} skeleton={<Skeleton rows={1} className="h-80" />}>
        {(rows) => {
          const spend = stacked(rows, {
            times: timesBetween(from, to),
            timeOf: ({ day }) => day,
            nameOf: (row) => nameOf(row[by] ?? (by === "model" ? "Uploads" : "No key")),
            valueOf: cost.valueOf,
          });
          return (
            <ChartOrTable
              title="Spend by day"
              controls={controls}
              chart={<StackedChart data={spend} measure={cost} timeLabel={dayLabel} />}
              table={<SpendTable spend={spend} />}
            />
          );
        }}
      </QueryView>
    </Card>
  );
}
