import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { request } from "../api/client.ts";
import { Button } from "../components/button.tsx";
import { ContentNote } from "../components/content-note.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { Field } from "../components/field.tsx";
import { Page } from "../components/page.tsx";
import { Select } from "../components/select.tsx";
import { Time } from "../components/time.tsx";
import { duration } from "../lib/format.ts";
import { statusOptions } from "../lib/statuses.ts";
import { secondsOf } from "../lib/time.ts";
import { adminBase, type Entry } from "./api.ts";
import { FilterForm, useFilters } from "./filters.tsx";
import { AccountLink, RequestLink } from "./links.tsx";
import { type Page as ListPage, PagedTable } from "./paged-table.tsx";
import { filled } from "./search.ts";
import { CallStatus } from "./states.tsx";

const route = getRouteApi("/operator/requests");

export function OperatorRequests() {
  const { from, to, ...filters } = route.useSearch();
  const query = new URLSearchParams(Object.entries(filters).flatMap(([name, value]) => (value ? [[name, value]] : [])));
  for (const [name, day] of [
    ["from", from],
    ["to", to],
  ] as const) {
    const seconds = secondsOf(day);
    if (seconds !== undefined) query.set(name, String(seconds));
  }
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
      <Filters key={query.toString()} />
      <PagedTable
        caption="Requests"
        queryKey={["requests", query.toString()]}
        read={read}
        rowKey={({ id }) => id}
        columns={[
          { header: "Time", cell: ({ created_at: at }) => <Time at={at} /> },
          { header: "Request", cell: ({ id }) => <RequestLink id={id} /> },
          { header: "Account", cell: ({ account }) => <AccountLink id={account} /> },
          { header: "Model", cell: ({ request: call }) => call?.model ?? call?.endpoint ?? "Not known", wide: true },
          {
            header: "Status",
            cell: ({ request: call, refunded }) =>
              call && <CallStatus status={call.status} error={refunded ? "refunded" : call.error} />,
          },
          { header: "Duration", cell: ({ request: call }) => call && duration(call.total_ms), numeric: true },
          { header: "Cost", usd: ({ amount_usd: usd }) => usd.replace(/^-/, "") },
        ]}
        empty={
          <EmptyState title={isFiltered ? "No call fits these filters" : "No calls yet"}>
            <p>
              {isFiltered
                ? "Ids, models and codes are compared as a whole. Clear a filter to see more."
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

const texts = [
  ["account", "Account", "acct_…"],
  ["key", "Key", "key_…"],
  ["tag", "Tag", "team-a"],
  ["session_id", "Session", ""],
  ["user", "User", ""],
  ["model", "Model", "local/chat"],
  ["endpoint", "Endpoint", "/v1/…"],
  ["upstream", "Upstream", "local"],
  ["code", "Error code", "no_capacity"],
] as const;

function Filters() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const { given, change, field } = useFilters(search);
  const go = (next: typeof search) => void navigate({ to: "/operator/requests", search: filled(next) });
  const hasIndex = Boolean(given.account || given.code) || ["failed", "cancelled"].includes(given.status ?? "");
  /** The server refuses these filters alone: no index covers them across accounts. */
  const missing = (name: keyof typeof search) => {
    if (!given[name]) return;
    if (["key", "tag", "session_id", "user"].includes(name) && !given.account) return "Add its account";
    if (["model", "endpoint", "upstream"].includes(name) && !hasIndex)
      return "Add an account, an error code, or a status failed or cancelled";
    return;
  };
  return (
    <FilterForm
      label="By filters"
      className="lg:grid-cols-5"
      onApply={() => texts.some(([name]) => missing(name)) || go(given)}
      onClear={Object.keys(search).length > 0 && (() => go({}))}
    >
      {texts.map(([name, label, placeholder]) => (
        <Field key={name} label={label} placeholder={placeholder} error={missing(name)} {...field(name)} />
      ))}
      <Select
        label="Status"
        value={given.status ?? ""}
        options={statusOptions}
        onChange={(status) => change("status", status)}
      />
      <Field label="From (UTC)" type="date" {...field("from")} />
      <Field label="Before (UTC)" type="date" {...field("to")} />
    </FilterForm>
  );
}
