import { useQuery } from "@tanstack/react-query";
import { DownloadCsv } from "../components/download-csv.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { Page } from "../components/page.tsx";
import { QueryView } from "../components/query-view.tsx";
import { Section } from "../components/section.tsx";
import { SwitchButtons } from "../components/switch-buttons.tsx";
import { Table } from "../components/table.tsx";
import { useChoice } from "../components/use-choice.ts";
import { count, daysBefore } from "../lib/format.ts";
import { useToday } from "../lib/time.ts";
import { fromNano } from "../lib/usd.ts";
import { type ServiceUsageFilter, serviceUsageQuery } from "./api.ts";
import { AccountLink } from "./links.tsx";
import { marginShare, type Sums, sumsOf, UsageSection } from "./usage-section.tsx";

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

/** The charges of accounts, the costs of upstreams, and the margin between them. */
export function OperatorUsage() {
  const [days, setDays] = useChoice("days", spans, "30");
  const [by, setBy] = useChoice("by", groups, "model");
  const to = useToday();
  const filter = { from: daysBefore(to, Number(days) - 1), to };
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

interface Group {
  readonly name: string;
  readonly sums: Sums;
}

const byCharge = (one: Group, other: Group) => Number(other.sums.charged - one.sums.charged);

function ByGroup({ filter, by }: { readonly filter: ServiceUsageFilter; readonly by: "model" | "account" }) {
  // Those of models are the sums of the chart's days, which are read already.
  const query = useQuery(serviceUsageQuery({ ...filter, groupBy: by === "model" ? "day,model" : "account" }));
  const title = by === "model" ? "Models" : "Accounts";
  return (
    <QueryView query={query}>
      {({ data }) => {
        const named = Map.groupBy(data, (row) => row[by] ?? "Unknown");
        const groups = [...named].map(([name, rows]) => ({ name, sums: sumsOf(rows) })).toSorted(byCharge);
        if (groups.length === 0)
          return (
            <EmptyState title="No calls in this period">
              <p>They are counted here within a minute.</p>
            </EmptyState>
          );
        return (
          <Section
            title={title}
            note={
              <DownloadCsv
                name={`usage-by-${by}-${filter.from}-${filter.to}.csv`}
                rows={groups}
                columns={{
                  [by]: ({ name }) => name,
                  calls: ({ sums }) => sums.calls,
                  failed: ({ sums }) => sums.failed,
                  input_tokens: ({ sums }) => sums.input_tokens,
                  output_tokens: ({ sums }) => sums.output_tokens,
                  cost_usd: ({ sums }) => ({ usd: fromNano(sums.charged) }),
                  upstream_cost_usd: ({ sums }) => ({ usd: fromNano(sums.upstream) }),
                  unpriced_usd: ({ sums }) => ({ usd: fromNano(sums.unpriced) }),
                  margin_usd: ({ sums }) => ({ usd: fromNano(sums.margin) }),
                }}
              />
            }
          >
            <Table
              caption={title}
              rows={groups.slice(0, shownRows)}
              rowKey={({ name }) => name}
              columns={[
                {
                  header: by === "model" ? "Model" : "Account",
                  cell: ({ name }) => (by === "account" ? <AccountLink id={name} /> : <span>{name}</span>),
                  wide: true,
                },
                { header: "Calls", cell: ({ sums }) => count(sums.calls), numeric: true },
                { header: "Failed", cell: ({ sums }) => count(sums.failed), numeric: true },
                { header: "Charged", usd: ({ sums }) => fromNano(sums.charged) },
                { header: "Upstream cost", usd: ({ sums }) => fromNano(sums.upstream) },
                { header: "Unknown cost", usd: ({ sums }) => fromNano(sums.unpriced) },
                { header: "Margin", usd: ({ sums }) => fromNano(sums.margin) },
                { header: "Margin, %", cell: ({ sums }) => marginShare(sums), numeric: true },
              ]}
            />
            {groups.length > shownRows && (
              <p className="text-muted">
                The {shownRows} largest of {count(groups.length)}; the file has all.
              </p>
            )}
          </Section>
        );
      }}
    </QueryView>
  );
}
