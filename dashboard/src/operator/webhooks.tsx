import { useQuery } from "@tanstack/react-query";
import { Badge } from "../components/badge.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { Page } from "../components/page.tsx";
import { QueryView } from "../components/query-view.tsx";
import { Table } from "../components/table.tsx";
import { Time } from "../components/time.tsx";
import { count } from "../lib/format.ts";
import { failingWebhooksQuery } from "./api.ts";
import { AccountLink, Id } from "./links.tsx";

export function OperatorWebhooks() {
  return (
    <Page
      title="Failing webhooks"
      intro="Endpoints whose last attempt failed, the longest failing first. After five days they are disabled, and their accounts are told after one."
    >
      <QueryView query={useQuery(failingWebhooksQuery)}>
        {({ data }) =>
          data.length === 0 ? (
            <EmptyState title="No endpoint fails">
              <p>If many fail at once, look at the workers of the pool webhooks: they may reach nobody.</p>
            </EmptyState>
          ) : (
            <Table
              caption="Failing webhooks"
              rows={data}
              rowKey={({ id }) => id}
              columns={[
                {
                  header: "Endpoint",
                  cell: ({ id, origin }) => (
                    <span className="flex min-w-0 flex-col">
                      <span className="wrap-anywhere">{origin}</span>
                      <Id>{id}</Id>
                    </span>
                  ),
                  wide: true,
                },
                { header: "Account", cell: ({ account }) => <AccountLink id={account} /> },
                {
                  header: "State",
                  cell: ({ disabled_reason: reason }) => (
                    <Badge tone={reason === null ? "warn" : "bad"}>
                      {reason === null ? "Failing" : `Disabled: ${reason.replace("_", " ")}`}
                    </Badge>
                  ),
                },
                { header: "Failing since", cell: ({ failing_since: at }) => <Time at={at} />, numeric: true },
                { header: "Failures", cell: ({ failures }) => count(failures), numeric: true },
                { header: "Last success", cell: ({ last_success_at: at }) => <Time at={at} />, numeric: true },
              ]}
            />
          )
        }
      </QueryView>
    </Page>
  );
}
