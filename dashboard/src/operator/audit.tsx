import { getRouteApi } from "@tanstack/react-router";
import { unwrap } from "../api/client.ts";
import { Button } from "../components/button.tsx";
import { DayRange } from "../components/day-range.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { Page } from "../components/page.tsx";
import { Select } from "../components/select.tsx";
import { TextFilter } from "../components/text-filter.tsx";
import { Time } from "../components/time.tsx";
import { spanOf } from "../lib/time.ts";
import { type AuditRecord, admin } from "./api.ts";
import { AccountLink, Id } from "./links.tsx";
import { PagedTable } from "./paged-table.tsx";
import { filled } from "./search.ts";
import { ResultStatus } from "./states.tsx";

const route = getRouteApi("/operator/audit");

const actions: readonly (readonly [action: string, label: string])[] = [
  ["POST /accounts", "Created an account"],
  ["PATCH /accounts/{id}", "Changed an account"],
  ["POST /accounts/{id}/credits", "Credited"],
  ["POST /accounts/{id}/keys", "Created a key"],
  ["PATCH /keys/{id}", "Changed a key"],
  ["DELETE /keys/{id}", "Revoked a key"],
  ["POST /keys/{id}/sign-in-links", "Created a sign-in link"],
  ["POST /archives/{id}/restore", "Restored an archive"],
  ["DELETE /archives/{id}/restore", "Removed what was restored"],
  ["POST /owed/{id}/refunds", "Recorded a refund"],
  ["POST /batches/{id}/cancel", "Cancelled a batch"],
];
const labels = new Map(actions);
const options = [{ value: "", label: "All" }, ...actions.map(([value, label]) => ({ value, label }))];

export function Audit() {
  const { who, action, target, from, to } = route.useSearch();
  const filter = {
    ...(who && { who }),
    ...(action && { action }),
    ...(target && { target }),
    ...spanOf(from, to),
  };
  const isFiltered = Object.keys(filter).length > 0;
  return (
    <Page
      title="Audit log"
      intro="Every change by an operator: who, what, and how it ended. Nothing is ever removed from it."
    >
      <Filters />
      <PagedTable
        caption="Audit log"
        queryKey={["audit", filter]}
        read={(after, signal) =>
          unwrap(admin.GET("/audit", { params: { query: { ...filter, ...(after && { after }) } }, signal }))
        }
        rowKey={({ id }) => id}
        columns={[
          { header: "Time", cell: ({ created_at: at }) => <Time at={at} /> },
          { header: "Actor", cell: (record) => <span className="font-medium">{record.who}</span> },
          { header: "Action", cell: (record) => <What record={record} /> },
          { header: "Target", cell: (record) => <Targets record={record} /> },
          { header: "Result", cell: ({ status, code }) => <ResultStatus status={status} code={code} /> },
        ]}
        empty={
          <EmptyState title={isFiltered ? "No change fits these filters" : "No changes yet"}>
            <p>
              {isFiltered
                ? "Names and ids are compared as a whole. Clear a filter to see more."
                : "Create an account, credit one, or revoke a key: each is recorded here before it is done."}
            </p>
          </EmptyState>
        }
      />
    </Page>
  );
}

function What({ record: { action, changes } }: { readonly record: AuditRecord }) {
  const fields = Object.entries(changes ?? {});
  return (
    <span className="flex flex-col gap-1">
      <span>{labels.get(action) ?? action}</span>
      {fields.length > 0 && (
        <span className="font-mono text-xs wrap-anywhere text-muted">
          {fields
            .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
            .join(", ")}
        </span>
      )}
    </span>
  );
}

const Targets = ({ record: { targets } }: { readonly record: AuditRecord }) => (
  <span className="flex flex-col gap-1">
    {targets.map((id) => (id.startsWith("acct_") ? <AccountLink key={id} id={id} /> : <Id key={id}>{id}</Id>))}
  </span>
);

function Filters() {
  const values = route.useSearch();
  const navigate = route.useNavigate();
  const set = (name: keyof typeof values) => (value: string) =>
    void navigate({ search: filled({ ...values, [name]: value }) });
  return (
    <search className="grid grid-cols-2 items-end gap-3 lg:grid-cols-6">
      <TextFilter label="Actor" value={values.who} onChange={set("who")} />
      <Select label="Action" value={values.action ?? ""} options={options} onChange={set("action")} />
      <TextFilter label="Account, key or other id" value={values.target} onChange={set("target")} />
      <DayRange from={values.from} to={values.to} onChange={(name, day) => set(name)(day)} />
      <Button look="quiet" disabled={Object.keys(values).length === 0} onClick={() => void navigate({ search: {} })}>
        Clear
      </Button>
    </search>
  );
}
