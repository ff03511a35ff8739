import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useKeyNames } from "../../api/keys.ts";
import { useCanManage } from "../../api/session.ts";
import { type UsageRow, usageQuery } from "../../api/usage.ts";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Notice } from "../../components/notice.tsx";
import { Page } from "../../components/page.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { capitalized, timeLabel } from "../../lib/format.ts";
import { useHour } from "../../lib/time.ts";
import { periodBefore, type UsageSearch, type UsageView, usageView } from "../../lib/usage.ts";
import { ChartSection } from "./chart-section.tsx";
import { Figures } from "./figures.tsx";
import { Filters } from "./filters.tsx";
import { GroupTable } from "./group-table.tsx";
import { ResponseCache } from "./response-cache.tsx";

const route = getRouteApi("/usage");
const withoutLabel: Readonly<Record<string, string>> = { tag: "No tag", session: "No session", user: "No user" };

/** Everything that is chosen is in the address, so that it survives a reload and can be linked. */
export function Usage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const view = usageView(search, useHour());
  const canManage = useCanManage();
  const change = (changed: UsageSearch) => void navigate({ search: { ...search, ...changed }, replace: true });
  const clear = () => void navigate({ search: {} });
  const isClear = Object.keys(search).length === 0;
  return (
    <Page
      title="Usage"
      intro="Calls that ended, by UTC day or hour, at most a minute old. Requests that were refused before they became calls are not counted."
    >
      <Filters view={view} onChange={change} isClear={isClear} onClear={clear} />
      <Results view={view} onChange={change} isClear={isClear} onClear={clear} />
      {canManage && <ResponseCache from={view.from.slice(0, 10)} to={view.to.slice(0, 10)} />}
    </Page>
  );
}

interface Props {
  readonly view: UsageView;
  readonly onChange: (changed: UsageSearch) => void;
  readonly isClear: boolean;
  readonly onClear: () => void;
}

function Results({ view, onChange, isClear, onClear }: Props) {
  const { from, to, by, interval, filters } = view;
  const keyName = useKeyNames(by === "key");
  const field = by === "time" ? interval : by;
  const compared = { from, to, ...filters, previous: true, latency: true };
  const totals = useQuery(usageQuery({ ...compared, groupBy: [] }));
  const rows = useQuery(usageQuery({ ...compared, groupBy: [field] }));
  const nameOf = (row: UsageRow) => {
    const value = row[field];
    if (by === "time") return timeLabel(value ?? "");
    // Nothing but the cost is known of a call whose process died before it was recorded.
    return value == null ? (withoutLabel[by] ?? "Unknown") : by === "key" ? keyName(value) : value;
  };
  const earlier = periodBefore(view);
  const period = (span: typeof earlier) => `${timeLabel(span.from)} to ${timeLabel(span.to)}`;
  return (
    <QueryView query={totals} skeleton={<Skeleton rows={2} className="h-40" />}>
      {([total]) =>
        total === undefined ? (
          <EmptyState title="No calls in this period">
            <p>Choose another period{isClear ? "." : ", or take a filter off."}</p>
            {!isClear && <Button onClick={onClear}>Clear the filters</Button>}
          </EmptyState>
        ) : (
          <>
            {total.first_token_p50_ms === undefined && (
              <Notice>
                There are too many sums for times to the first token. Choose fewer days, a key or a model.
              </Notice>
            )}
            <Figures total={total} />
            <ChartSection view={view} nameOf={nameOf} onShow={(show) => onChange({ show })} />
            <QueryView query={rows}>
              {(found) => (
                <GroupTable
                  title={`Usage by ${field}`}
                  group={capitalized(field)}
                  nameOf={nameOf}
                  rows={found}
                  total={total}
                  isByTime={by === "time"}
                  note={`${period(view)}. Below each number: ${period(earlier)}, and the change.${by === "tag" ? " A call counts in each of its tags." : ""}`}
                  fileName={`usage-by-${field}-${from.slice(0, 13)}-${to.slice(0, 13)}.csv`}
                />
              )}
            </QueryView>
          </>
        )
      }
    </QueryView>
  );
}
