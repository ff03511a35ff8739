import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { request } from "../api/client.ts";
import { Button } from "../components/button.tsx";
import { ContentNote } from "../components/content-note.tsx";
import { DayRange } from "../components/day-range.tsx";
import { type CsvColumns, DownloadCsv } from "../components/download-csv.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { Field } from "../components/field.tsx";
import { Page } from "../components/page.tsx";
import { optionsOf, Select } from "../components/select.tsx";
import { TextFilter } from "../components/text-filter.tsx";
import { Time } from "../components/time.tsx";
import { calledName } from "../lib/calls.ts";
import { duration } from "../lib/format.ts";
import { callStatuses } from "../lib/statuses.ts";
import { spanOf } from "../lib/time.ts";
import { accountNameQuery } from "./account-names.ts";
import { adminBase, catalogQuery, type Entry, upstreamsQuery } from "./api.ts";
import { AccountLink, OneLineId, RequestLink } from "./links.tsx";
import { type Page as ListPage, PagedTable } from "./paged-table.tsx";
import { filled } from "./search.ts";
import { CallStatus } from "./states.tsx";

const route = getRouteApi("/operator/requests");

const columns: CsvColumns<Entry> = {
  id: ({ id }) => id,
  ended_at: ({ created_at: at }) => new Date(at * 1_000).toISOString(),
  account: ({ account }) => account,
  key: ({ request: call }) => call?.key ?? null,
  model: ({ request: call }) => call?.model ?? null,
  endpoint: ({ request: call }) => call?.endpoint ?? null,
  upstream: ({ request: call }) => call?.upstream ?? null,
  status: ({ request: call }) => call?.status ?? null,
  error: ({ request: call }) => call?.error ?? null,
  total_ms: ({ request: call }) => call?.total_ms ?? null,
  first_token_ms: ({ request: call }) => call?.first_token_ms ?? null,
  cost_usd: ({ amount_usd: usd }) => ({ usd: costOf(usd) }),
  upstream_cost_usd: ({ request: call }) => (call?.upstream_cost_usd ? { usd: call.upstream_cost_usd } : null),
};

/** Charges are negative in the ledger. */
const costOf = (usd: string) => usd.replace(/^-/, "");

export function OperatorRequests() {
  const { from, to, ...filters } = route.useSearch();
  const given = Object.entries({ ...filters, ...spanOf(from, to) });
  const query = new URLSearchParams(given.flatMap(([name, value]) => (value ? [[name, String(value)]] : [])));
  const read = (after: string | undefined, signal: AbortSignal) =>
    request<ListPage<Entry>>(
      `${adminBase}/requests?${new URLSearchParams([...query, ...(after ? [["after", after]] : [])])}`,
      { signal },
    );
  const isFiltered = query.size > 0;
  return (
    <Page
      title="Requests"
      intro={
        <>
          Calls of all accounts, newest first. <ContentNote />
        </>
      }
    >
      <ById />
      <Filters />
      <PagedTable
        caption="Requests"
        queryKey={["requests", query.toString()]}
        read={read}
        rowKey={({ id }) => id}
        columns={[
          { header: "Time", cell: ({ created_at: at }) => <Time at={at} /> },
          { header: "Request", cell: ({ id }) => <RequestLink id={id} /> },
          { header: "Account", cell: ({ account }) => <AccountLink id={account} /> },
          { header: "Key", cell: ({ request: call }) => (call?.key ? <OneLineId>{call.key}</OneLineId> : "–") },
          { header: "Model", cell: ({ request: call }) => (call ? calledName(call) : "Unknown"), wide: true },
          {
            header: "Status",
            cell: ({ request: call, refunded }) =>
              call && <CallStatus status={call.status} error={refunded ? "refunded" : call.error} />,
          },
          { header: "Duration", cell: ({ request: call }) => call && duration(call.total_ms), numeric: true },
          { header: "Cost", usd: ({ amount_usd: usd }) => costOf(usd) },
        ]}
        controls={(rows) => <DownloadCsv name="requests.csv" columns={columns} rows={rows} />}
        empty={
          <EmptyState title={isFiltered ? "No call fits these filters" : "No calls yet"}>
            <p>
              {isFiltered
                ? "Names, ids and codes are compared as a whole. Clear a filter to see more."
                : "A call is listed once its cost is captured."}
            </p>
          </EmptyState>
        }
      />
    </Page>
  );
}

function ById() {
  const [id, setId] = useState("");
  const navigate = useNavigate();
  function submit(event: FormEvent) {
    event.preventDefault();
    void navigate({ to: "/operator/requests/$id", params: { id: id.trim() } });
  }
  return (
    <form aria-label="By request id" onSubmit={submit} className="flex max-w-xl items-end gap-3">
      <Field
        className="flex-1"
        label="Request id, as in x-request-id"
        placeholder="req_…"
        required
        value={id}
        onChange={(event) => setId(event.target.value)}
      />
      <Button type="submit">Open</Button>
    </form>
  );
}

function Filters() {
  const values = route.useSearch();
  const navigate = route.useNavigate();
  const models = useQuery(catalogQuery).data?.data ?? [];
  const upstreams = useQuery(upstreamsQuery).data?.data ?? [];
  const account = useQuery({ ...accountNameQuery(values.account ?? ""), enabled: isAccountId(values.account) });
  const set = (name: keyof typeof values) => (value: string) =>
    void navigate({ search: filled({ ...values, [name]: value }) });
  const text = (name: keyof typeof values, label: string) => (
    <TextFilter label={label} value={values[name]} onChange={set(name)} />
  );
  return (
    <search className="grid grid-cols-2 items-end gap-3 sm:grid-cols-3 lg:grid-cols-5">
      <TextFilter
        label="Account, by name or id"
        value={account.data ?? values.account}
        onChange={(account) => void navigate({ search: filled({ ...values, account }) })}
      />
      <Select label="Status" value={values.status ?? ""} options={callStatuses} onChange={set("status")} />
      <Select
        label="Model"
        value={values.model ?? ""}
        options={optionsOf(
          "All",
          models.map(({ id }) => id),
          values.model,
        )}
        onChange={set("model")}
      />
      <Select
        label="Upstream"
        value={values.upstream ?? ""}
        options={optionsOf(
          "All",
          upstreams.map(({ id }) => id),
          values.upstream,
        )}
        onChange={set("upstream")}
      />
      {text("endpoint", "Endpoint")}
      {text("code", "Error code")}
      {values.account && (
        <>
          {text("key", "Key, by id")}
          {text("tag", "Tag")}
          {text("session_id", "Session")}
          {text("user", "User")}
        </>
      )}
      <DayRange from={values.from} to={values.to} onChange={(name, day) => set(name)(day)} />
      <Button look="quiet" disabled={Object.keys(values).length === 0} onClick={() => void navigate({ search: {} })}>
        Clear
      </Button>
    </search>
  );
}

const isAccountId = (account: string | undefined) => /^(acct_|x402:)./.test(account ?? "");
