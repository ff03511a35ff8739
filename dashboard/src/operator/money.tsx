import { useQuery } from "@tanstack/react-query";
import { unwrap } from "../api/client.ts";
import { useSession } from "../api/session.ts";
import { Badge } from "../components/badge.tsx";
import { Page } from "../components/page.tsx";
import { QueryView } from "../components/query-view.tsx";
import { Section } from "../components/section.tsx";
import { Table } from "../components/table.tsx";
import { Time } from "../components/time.tsx";
import { count } from "../lib/format.ts";
import { statusLabel } from "../lib/statuses.ts";
import { admin } from "./api.ts";
import { Archives } from "./archives.tsx";
import { LedgerCheck } from "./ledger-check.tsx";
import { AccountLink, Id, RequestLink } from "./links.tsx";
import { Nothing } from "./overview-parts.tsx";
import { Owed } from "./owed.tsx";
import { PagedTable } from "./paged-table.tsx";

const limit = 20;

export const OperatorMoney = () => (
  <Page title="Money" intro="Whether the books agree, what is held and owed, and what was archived.">
    <LedgerCheck />
    <Holds />
    <Owed />
    <Buybacks />
    <Archives />
  </Page>
);

const Holds = () => (
  <Section title="Holds and leases">
    <PagedTable
      caption="Holds and leases, oldest first"
      queryKey={["holds"]}
      read={(after, signal) =>
        unwrap(admin.GET("/holds", { params: { query: { limit, ...(after && { after }) } }, signal }))
      }
      rowKey={({ id, account }) => `${account} ${id}`}
      columns={[
        { header: "Held", cell: ({ held_at: at }) => <Time at={at} /> },
        { header: "Kind", cell: ({ object }) => (object === "lease" ? "Lease of many calls" : "Hold of one call") },
        { header: "Id", cell: ({ id, object }) => (object === "lease" ? <Id>{id}</Id> : <RequestLink id={id} />) },
        { header: "Account", cell: ({ account }) => <AccountLink id={account} /> },
        { header: "Ends", cell: ({ expires_at: at }) => <Time at={at} />, numeric: true },
        { header: "Amount", usd: ({ amount_usd: usd }) => usd },
      ]}
      empty={
        <Nothing title="Nothing is held">
          While calls run, the most that they can cost is held here. The oldest comes first.
        </Nothing>
      }
    />
  </Section>
);

const executed = {
  true: "A batch of what has accrued buys the tokens.",
  false: "Nothing buys them yet: BUYBACK_EXECUTOR only records what is due.",
} as const;

/** Shown once something has accrued, or if something buys tokens. */
function Buybacks() {
  const { bps, executed: isExecuted } = useSession().service.buybacks;
  const accruals = useQuery({
    queryKey: ["admin", "accruals"],
    queryFn: ({ signal }) => unwrap(admin.GET("/buyback/accruals", { signal })),
  });
  const batches = useQuery({
    queryKey: ["admin", "batches", "any"],
    queryFn: ({ signal }) => unwrap(admin.GET("/buyback/batches", { params: { query: { limit: 1 } }, signal })),
  });
  const accrued = accruals.data?.data ?? [];
  const hasAny = accrued.length > 0 || (batches.data?.data.length ?? 0) > 0;
  if (!(isExecuted || hasAny || accruals.error || batches.error)) return null;
  return (
    <Section title="Buybacks">
      <p className="max-w-2xl text-muted">
        {bps / 100} % of each charge is set aside to buy tokens (BUYBACK_BPS; 0 turns it off).{" "}
        {executed[`${isExecuted}`]}
      </p>
      <QueryView query={accruals}>
        {({ data }) =>
          data.length > 0 && (
            <Table
              caption="Accrued, in no batch yet"
              rows={data}
              rowKey={({ token }) => token}
              columns={[
                { header: "Accrued for", cell: ({ token }) => <Id>{token}</Id> },
                { header: "Charges", cell: ({ entries }) => count(entries), numeric: true },
                { header: "Amount", usd: ({ amount_usd: usd }) => usd },
              ]}
            />
          )
        }
      </QueryView>
      <PagedTable
        caption="Batches"
        queryKey={["batches"]}
        read={(after, signal) =>
          unwrap(admin.GET("/buyback/batches", { params: { query: { limit, ...(after && { after }) } }, signal }))
        }
        rowKey={({ id }) => id}
        columns={[
          { header: "Batch", cell: ({ id }) => <Id>{id}</Id> },
          {
            header: "State",
            cell: ({ state }) => <Badge tone={state === "done" ? "good" : "accent"}>{statusLabel(state)}</Badge>,
          },
          { header: "Created", cell: ({ created_at: at }) => <Time at={at} /> },
          { header: "Bought", cell: ({ done_at: at }) => <Time at={at} absent="not yet" /> },
          { header: "Charges", cell: ({ entries }) => count(entries), numeric: true },
          { header: "Amount", usd: ({ amount_usd: usd }) => usd },
        ]}
        empty={
          <Nothing title="No batches">
            A batch is made for each token once <code className="font-mono text-xs">BUYBACK_MINIMUM_USD</code> has
            accrued.
          </Nothing>
        }
      />
    </Section>
  );
}
