import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { downloadInvoice, type InvoiceLine, invoiceQuery } from "../api/invoices.ts";
import { useCanManage } from "../api/session.ts";
import { Button } from "../components/button.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { ErrorNote } from "../components/error-note.tsx";
import { Page } from "../components/page.tsx";
import { QueryView } from "../components/query-view.tsx";
import { Select } from "../components/select.tsx";
import { type Column, Table } from "../components/table.tsx";
import { count, dayLabel, dayOf } from "../lib/format.ts";
import { useNow } from "../lib/time.ts";

const route = getRouteApi("/invoices");
const shownMonths = 24;

const monthName = new Intl.DateTimeFormat("en-US", { month: "long", year: "numeric", timeZone: "UTC" });

/** Newest first. */
function monthsUntil(nowMs: number) {
  const now = new Date(nowMs);
  return Array.from({ length: shownMonths }, (_, back) => {
    const first = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1));
    return { value: dayOf(first).slice(0, 7), label: monthName.format(first) };
  });
}

export function Invoices() {
  const canManage = useCanManage();
  return (
    <Page title="Invoices" intro="What was charged, by day and model. Days are UTC.">
      {canManage ? (
        <Month />
      ) : (
        <EmptyState title="This key cannot see invoices">
          <p>Sign in with a key that has the scope manage.</p>
        </EmptyState>
      )}
    </Page>
  );
}

function Month() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const months = monthsUntil(useNow());
  const month = months.find(({ value }) => value === search.month)?.value ?? months[0]?.value ?? "";
  const download = useMutation({ mutationFn: downloadInvoice });
  return (
    <>
      <div className="flex flex-wrap items-end gap-3">
        <Select
          label="Month"
          className="w-56"
          value={month}
          options={months}
          onChange={(value) => void navigate({ search: { month: value } })}
        />
        <Button busy={download.isPending} onClick={() => download.mutate(month)}>
          Download CSV
        </Button>
      </div>
      {download.error && <ErrorNote error={download.error} />}
      <QueryView query={useQuery(invoiceQuery(month))}>
        {({ lines, total_usd }) =>
          lines.length > 0 ? (
            <Lines lines={lines} totalUsd={total_usd} />
          ) : (
            <EmptyState title="No charges in this month">
              <p>Choose another month above.</p>
            </EmptyState>
          )
        }
      </QueryView>
    </>
  );
}

const columns: readonly Column<InvoiceLine>[] = [
  {
    header: "Day",
    cell: ({ day }) => (
      <time dateTime={day} className="whitespace-nowrap">
        {dayLabel(day)}
      </time>
    ),
  },
  {
    header: "Model",
    cell: ({ model }) => <span className="wrap-anywhere">{model ?? "Storage and other"}</span>,
    wide: true,
  },
  { header: "Calls", numeric: true, cell: ({ calls }) => count(calls) },
  { header: "Input tokens", numeric: true, cell: ({ input_tokens }) => count(input_tokens) },
  { header: "Output tokens", numeric: true, cell: ({ output_tokens }) => count(output_tokens) },
  { header: "Units", numeric: true, cell: ({ units }) => count(units) },
  { header: "Cost", usd: ({ cost_usd }) => cost_usd },
];

const Lines = ({ lines, totalUsd }: { readonly lines: readonly InvoiceLine[]; readonly totalUsd: string }) => (
  <Table
    caption="Charges of the month"
    columns={columns}
    rows={lines}
    rowKey={({ day, model }) => `${day} ${model}`}
    footer={["Total", null, null, null, null, null, totalUsd]}
  />
);
