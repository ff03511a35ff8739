import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { DownloadCsv } from "../components/download-csv.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { Page } from "../components/page.tsx";
import { QueryView } from "../components/query-view.tsx";
import { SwitchButtons } from "../components/switch-buttons.tsx";
import { Table } from "../components/table.tsx";
import { useChoice } from "../components/use-choice.ts";
import { count, daysBefore } from "../lib/format.ts";
import { useToday } from "../lib/time.ts";
import { type ServiceUsage, type ServiceUsageFilter, serviceUsageQuery } from "./api.ts";
import { AccountLink } from "./links.tsx";
import { Section } from "./overview-parts.tsx";
import { marginShare, sumsOf, UsageSection } from "./usage-section.tsx";

const route = getRouteApi("/operator/usage");

const spans = [
  { value: "1", label: "Today" },
  { value: "7", label: "7 days" },
  { value: "30", label: "30 days" },
  { value: "90", label: "90 days" },
] as const;

const groups = [
  { value: "model", label: "By model" },
  { value: "account", label: "By account" },
] as const;

/** What accounts were charged, what upstreams cost, and the margin between them. */
export function OperatorUsage() {
  const { model } = route.useSearch();
  const [days, setDays] = useChoice("days", spans, "30");
  const [by, setBy] = useChoice("by", groups, "model");
  const to = useToday();
  const filter = { from: daysBefore(to, Number(days) - 1), to, ...(model && { model }) };
  return (
    <Page
      title="Usage"
      intro="Calls of all accounts by UTC day, at most a minute old. The margin is what was charged less the upstreams' cost, as the catalog has it."
      actions={
        <>
          <SwitchButtons label="Days" value={days} options={spans} onChange={setDays} />
          <SwitchButtons label="Group" value={by} options={groups} onChange={setBy} />
        </>
      }
    >
      <UsageSection filter={filter} byModel={by === "model"} />
      <ByGroup filter={filter} by={by} />
    </Page>
  );
}

/** More are in the file, and in the admin interface. */
const shownRows = 100;

function ByGroup({ filter, by }: { readonly filter: ServiceUsageFilter; readonly by: "model" | "account" }) {
  const query = useQuery(serviceUsageQuery({ ...filter, groupBy: by }));
  const title = by === "model" ? "Models" : "Accounts";
  const nameOf = (row: ServiceUsage) => row[by] ?? "Not known";
  return (
    <QueryView query={query}>
      {({ data: rows }) =>
        rows.length === 0 ? (
          <EmptyState title="No calls in this period">
            <p>They are counted here within a minute.</p>
          </EmptyState>
        ) : (
          <Section
            title={title}
            note={
              <DownloadCsv
                name={`usage-by-${by}-${filter.from}-${filter.to}.csv`}
                rows={rows}
                columns={{
                  [by]: nameOf,
                  calls: ({ calls }) => calls,
                  failed: ({ failed }) => failed,
                  input_tokens: (row) => row.input_tokens,
                  output_tokens: (row) => row.output_tokens,
                  cost_usd: (row) => ({ usd: row.cost_usd }),
                  upstream_cost_usd: (row) => ({ usd: row.upstream_cost_usd }),
                  unpriced_usd: (row) => ({ usd: row.unpriced_usd }),
                  margin_usd: (row) => ({ usd: row.margin_usd }),
                }}
              />
            }
          >
            <Table
              caption={title}
              rows={rows.slice(0, shownRows)}
              rowKey={nameOf}
              columns={[
                {
                  header: by === "model" ? "Model" : "Account",
                  cell: (row) =>
                    by === "account" && row.account ? <AccountLink id={row.account} /> : <span>{nameOf(row)}</span>,
                  wide: true,
                },
                { header: "Calls", cell: ({ calls }) => count(calls), numeric: true },
                { header: "Failed", cell: ({ failed }) => count(failed), numeric: true },
                { header: "Charged", usd: (row) => row.cost_usd },
                { header: "Upstream cost", usd: (row) => row.upstream_cost_usd },
                { header: "Cost not known", usd: (row) => row.unpriced_usd },
                { header: "Margin", usd: (row) => row.margin_usd },
                { header: "Margin, %", cell: (row) => marginShare(sumsOf([row])), numeric: true },
              ]}
            />
            {rows.length > shownRows && (
              <p className="text-muted">
                The {shownRows} largest of {count(rows.length)}; the file has all.
              </p>
            )}
          </Section>
        )
      }
    </QueryView>
  );
}
