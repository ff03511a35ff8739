import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { EmptyState } from "../components/empty-state.tsx";
import { Select } from "../components/select.tsx";
import { Time } from "../components/time.tsx";
import { calledName } from "../lib/calls.ts";
import { admin, type Entry } from "./api.ts";
import { Id, RequestLink } from "./links.tsx";
import { PagedTable } from "./paged-table.tsx";
import { CallStatus } from "./states.tsx";

const kinds: readonly { readonly value: Entry["kind"] | ""; readonly label: string }[] = [
  { value: "", label: "All" },
  { value: "usage", label: "Calls" },
  { value: "storage", label: "Uploads" },
  { value: "credit", label: "Credits" },
  { value: "adjustment", label: "Taken back" },
  { value: "refund", label: "Refunds" },
  { value: "payout", label: "Payouts" },
];
const isKind = (text: string): text is Entry["kind"] => kinds.some(({ value }) => value !== "" && value === text);

export function AccountLedger({ account }: { readonly account: string }) {
  const [kind, setKind] = useState("");
  return (
    <div className="flex flex-col gap-4">
      <Select className="max-w-48" label="Kind" value={kind} options={kinds} onChange={setKind} />
      <PagedTable
        caption="Ledger"
        queryKey={["ledger", account, kind]}
        read={(after, signal) =>
          unwrap(
            admin.GET("/accounts/{id}/ledger", {
              params: { path: { id: account }, query: { ...(isKind(kind) && { kind }), ...(after && { after }) } },
              signal,
            }),
          )
        }
        rowKey={({ id }) => id}
        columns={[
          { header: "Time", cell: ({ created_at: at }) => <Time at={at} /> },
          { header: "Kind", cell: (entry) => kinds.find(({ value }) => value === entry.kind)?.label ?? entry.kind },
          { header: "Item", cell: (entry) => <What entry={entry} /> },
          { header: "Amount", usd: ({ amount_usd: usd }) => usd },
        ]}
        empty={
          <EmptyState title="No entries">
            <p>{kind === "" ? "Credits and the costs of calls are listed here." : "None of this kind."}</p>
          </EmptyState>
        }
      />
    </div>
  );
}

function What({ entry: { id, kind, request, reason, transaction } }: { readonly entry: Entry }) {
  if (!request) return reason ?? <Id>{transaction ?? id}</Id>;
  return (
    <span className="flex flex-col gap-1">
      <span className="flex flex-wrap items-center gap-2">
        {kind === "storage" ? "Upload" : calledName(request)}
        {request.status !== "succeeded" && <CallStatus status={request.status} error={request.error} />}
      </span>
      <RequestLink id={id} />
    </span>
  );
}
