import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { lazy } from "react";
import { keysQuery } from "../../api/keys.ts";
import { useCanManage } from "../../api/session.ts";
import { usageQuery } from "../../api/usage.ts";
import { Card } from "../../components/card.tsx";
import { ChartOrTable } from "../../components/chart-or-table.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { SwitchButtons } from "../../components/switch-buttons.tsx";
import { dayOf, daysBefore } from "../../lib/format.ts";
import { spendByDay } from "../../lib/spend.ts";
import { useNow } from "../../lib/time.ts";
import { loaded } from "../../loaded.ts";
import { SpendTable } from "./spend-table.tsx";

const SpendChart = lazy(loaded(() => import("./spend-chart.tsx")));
const route = getRouteApi("/");

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
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const by = search.by === "key" ? "key" : "model";
  const span = spans.find(({ value }) => value === search.days)?.value ?? "30";
  const to = dayOf(new Date(useNow()));
  const from = daysBefore(to, Number(span) - 1);
  const usage = useQuery(usageQuery({ from, to, groupBy: ["day", by] }));
  const nameOf = useKeyNames(by === "key");
  const controls = (
    <>
      <SwitchButtons
        label="Group"
        value={by}
        options={groups}
        onChange={(value) => void navigate({ search: { ...search, by: value }, replace: true })}
      />
      <SwitchButtons
        label="Days"
        value={span}
        options={spans}
        onChange={(value) => void navigate({ search: { ...search, days: value }, replace: true })}
      />
    </>
  );
  return (
    <Card>
      <QueryView query={usage} skeleton={<Skeleton rows={1} className="h-80" />}>
        {(rows) => {
          const spend = spendByDay(rows, by, nameOf, { from, to });
          return (
            <ChartOrTable
              title="Spend by day"
              controls={controls}
              chart={<SpendChart spend={spend} />}
              table={<SpendTable spend={spend} />}
            />
          );
        }}
      </QueryView>
    </Card>
  );
}

/** Maps key ids to names. */
function useKeyNames(isNeeded: boolean): (value: string) => string {
  const canManage = useCanManage();
  const keys = useInfiniteQuery({ ...keysQuery, enabled: isNeeded && canManage });
  const names = new Map(
    keys.data?.pages
      .flatMap(({ data }) => data)
      .map(({ id, name, prefix }) => [id, name ? `${name} (${prefix})` : prefix]),
  );
  return (value) => names.get(value) ?? value;
}
