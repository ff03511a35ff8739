import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { lazy } from "react";
import { Badge } from "../components/badge.tsx";
import { Figure } from "../components/card.tsx";
import { ChartOrTable } from "../components/chart-or-table.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { Money } from "../components/money.tsx";
import { Page } from "../components/page.tsx";
import { QueryView } from "../components/query-view.tsx";
import { SwitchButtons } from "../components/switch-buttons.tsx";
import { Table } from "../components/table.tsx";
import { useChoice } from "../components/use-choice.ts";
import { count } from "../lib/format.ts";
import { timeZone } from "../lib/time.ts";
import { loaded } from "../loaded.ts";
import { type Overview, overviewQuery, type Window } from "./api.ts";
import { linkClass } from "./links.tsx";
import { Money as MoneyState, Pools, percent, Stores, Upstreams } from "./overview-parts.tsx";
import { timeLabel } from "./traffic.ts";

const TrafficChart = lazy(loaded(() => import("./traffic-chart.tsx")));

const windows = [
  { value: "last_5_minutes", label: "5 minutes" },
  { value: "last_hour", label: "Hour" },
  { value: "last_day", label: "Day" },
] as const;

export function OperatorOverview() {
  const overview = useQuery(overviewQuery);
  const [within, setWithin] = useChoice("within", windows, "last_hour");
  return (
    <Page
      title="Overview"
      intro="Traffic, queues and upstreams of the whole service, refreshed every 2 seconds."
      actions={<SwitchButtons label="Time" value={within} options={windows} onChange={setWithin} />}
    >
      <QueryView query={overview}>
        {(data) => (
          <>
            <Traffic overview={data} within={within} />
            <Pools overview={data} />
            <Upstreams upstreams={data.upstreams} within={within} />
            <div className="grid gap-8 lg:grid-cols-2">
              <Stores overview={data} />
              <MoneyState overview={data} />
            </div>
          </>
        )}
      </QueryView>
    </Page>
  );
}

function Traffic({ overview, within }: { readonly overview: Overview; readonly within: Window }) {
  const { traffic } = overview;
  if (!traffic)
    return (
      <EmptyState title="Calls cannot be counted">
        <p>Redis does not answer. Counting goes on by itself when it is back; balances are not affected.</p>
      </EmptyState>
    );
  const { calls, failed, refused, charged_usd } = traffic[within];
  const points = within === "last_day" ? traffic.hours : traffic.minutes;
  const unit = within === "last_day" ? "hour" : "minute";
  return (
    <>
      <div className="grid grid-cols-2 gap-4 lg:grid-cols-4">
        <Figure label="Calls" note="Ended, and refused">
          {count(calls)}
        </Figure>
        <Figure label="Failed" note={`${percent(failed, calls)} % of calls, as in Requests`}>
          <span className={failed > 0 ? "text-bad" : undefined}>{count(failed)}</span>
        </Figure>
        <Figure label="Refused" note="Before they became calls: limits, balance, wrong requests">
          {count(refused)}
        </Figure>
        <Figure
          label="Charged"
          note={
            <Link to="/operator/usage" className={linkClass}>
              Margin, by model and day
            </Link>
          }
        >
          <Money usd={charged_usd} />
        </Figure>
      </div>
      {traffic.last_day.calls === 0 ? (
        <EmptyState title="No calls in the last day">
          <p>
            They are counted here within five seconds.{" "}
            <Link to="/operator/accounts" className={linkClass}>
              Give an account a key
            </Link>
            , or try one in its playground.
          </p>
        </EmptyState>
      ) : (
        <ChartOrTable
          title={`Calls by ${unit}`}
          chart={<TrafficChart points={points} unit={unit} />}
          table={
            <Table
              caption={`Calls by ${unit}`}
              rows={points.filter((point) => point.calls > 0).toReversed()}
              rowKey={({ at }) => String(at)}
              columns={[
                { header: `Time (${timeZone})`, cell: ({ at }) => timeLabel(at) },
                { header: "Calls", cell: (point) => count(point.calls), numeric: true },
                {
                  header: "Failed",
                  cell: (point) => (point.failed > 0 ? <Badge tone="bad">{count(point.failed)}</Badge> : "0"),
                  numeric: true,
                },
                { header: "Refused", cell: (point) => count(point.refused), numeric: true },
                { header: "Charged", usd: (point) => point.charged_usd },
              ]}
            />
          }
        />
      )}
    </>
  );
}
