import { useMutation, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { Badge } from "../components/badge.tsx";
import { BatchCalls, BatchProgress, BatchStatus } from "../components/batch-state.tsx";
import { Button } from "../components/button.tsx";
import { ConfirmDialog } from "../components/dialog.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { Money } from "../components/money.tsx";
import { Page } from "../components/page.tsx";
import { Select } from "../components/select.tsx";
import type { Column } from "../components/table.tsx";
import { TextFilter } from "../components/text-filter.tsx";
import { Time } from "../components/time.tsx";
import { toast } from "../components/toast.tsx";
import { statusOptions } from "../lib/statuses.ts";
import { useNow } from "../lib/time.ts";
import { type AccountBatch, admin, slowRefreshMs } from "./api.ts";
import { AccountLink, Id } from "./links.tsx";
import { PagedTable } from "./paged-table.tsx";
import { filled } from "./search.ts";

const route = getRouteApi("/operator/batches");

/** No line of a batch was recorded for this long while a process works at it (the alert InferenceBatchStalled). */
const stalledSeconds = 30 * 60;

const statuses = ["validating", "in_progress", "cancelling", "finalizing"] as const;

const columns: readonly Column<AccountBatch>[] = [
  {
    header: "Created",
    cell: ({ id, created_at: at }) => (
      <span className="flex min-w-0 flex-col">
        <Time at={at} />
        <Id>{id}</Id>
      </span>
    ),
    wide: true,
  },
  { header: "Account", cell: ({ account }) => <AccountLink id={account} /> },
  {
    header: "Calls",
    cell: ({ model, endpoint }) => <BatchCalls model={model} endpoint={endpoint} />,
  },
  { header: "Status", cell: (batch) => <Status batch={batch} />, wide: true },
  { header: "Progress", cell: (batch) => <Progress batch={batch} />, wide: true },
  {
    header: "Cost so far",
    numeric: true,
    cell: ({ cost_usd: cost, estimated_max_cost_usd: most, status }) => (
      <span className="flex flex-col">
        <Money usd={cost} />
        {status !== "validating" && (
          <span className="text-xs text-muted">
            at most <Money usd={most} />
          </span>
        )}
      </span>
    ),
  },
  { header: "Expires", cell: ({ expires_at: at }) => <Time at={at} />, numeric: true },
  { header: "", cell: (batch) => <Cancel batch={batch} /> },
];

function Status({ batch: { status, paused, claimed_by: worker, progress_at: at } }: { readonly batch: AccountBatch }) {
  const now = useNow();
  const isStalled =
    status === "in_progress" && paused === null && worker !== null && at !== null && now / 1000 - at > stalledSeconds;
  return (
    <span className="flex flex-col gap-1">
      <BatchStatus status={status} paused={paused}>
        {isStalled && <Badge tone="bad">Stalled</Badge>}
      </BatchStatus>
      {worker === null ? (
        <span className="text-xs text-muted">no process works at it</span>
      ) : (
        <span className="text-xs text-muted">
          at <Id>{worker}</Id>
        </span>
      )}
    </span>
  );
}

const Progress = ({ batch: { status, lines, counts, progress_at: at } }: { readonly batch: AccountBatch }) => (
  <span className="flex flex-col gap-1">
    <BatchProgress
      status={status}
      total={lines}
      completed={counts.succeeded}
      failed={counts.failed + counts.expired + counts.cancelled}
    />
    {at !== null && (
      <span className="text-xs text-muted">
        last progress <Time at={at} />
      </span>
    )}
  </span>
);

function Cancel({ batch: { id, account, status } }: { readonly batch: AccountBatch }) {
  const queries = useQueryClient();
  const [isAsked, ask] = useState(false);
  const close = () => ask(false);
  const cancel = useMutation({
    mutationFn: () => unwrap(admin.POST("/batches/{id}/cancel", { params: { path: { id } } })),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["admin", "batches"] });
      toast("The batch is cancelled");
      close();
    },
  });
  if (status !== "validating" && status !== "in_progress") return null;
  return (
    <>
      <Button small onClick={() => ask(true)} aria-label={`Cancel ${id}`}>
        Cancel
      </Button>
      {isAsked && (
        <ConfirmDialog
          title="Cancel this batch?"
          action="Cancel it"
          busy={cancel.isPending}
          error={cancel.error}
          onConfirm={() => cancel.mutate()}
          onClose={close}
        >
          <p className="wrap-anywhere">
            {id} of {account}. Lines that run are finished and charged, the others do not run. What has finished stays
            in its files, and the audit log has your name.
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}

export function OperatorBatches() {
  const search = route.useSearch();
  const status = statuses.find((each) => each === search.status);
  const filter = { ...(search.account && { account: search.account }), ...(status && { status }) };
  const isFiltered = Object.keys(filter).length > 0;
  return (
    <Page title="Batches" intro="Batches of all accounts that have not ended, oldest first.">
      <Filters key={JSON.stringify(filter)} />
      <PagedTable
        caption="Open batches"
        queryKey={["batches", filter]}
        read={(after, signal) =>
          unwrap(admin.GET("/batches", { params: { query: { ...filter, ...(after && { after }) } }, signal }))
        }
        refreshMs={slowRefreshMs}
        rowKey={({ id }) => id}
        columns={columns}
        empty={
          <EmptyState title={isFiltered ? "No open batch fits these filters" : "No batches are open"}>
            <p>
              {isFiltered
                ? "Account ids are compared as a whole. Clear a filter to see more."
                : "A batch is listed from its creation until its last line is recorded."}
            </p>
          </EmptyState>
        }
      />
    </Page>
  );
}

function Filters() {
  const values = route.useSearch();
  const navigate = route.useNavigate();
  const set = (name: keyof typeof values) => (value: string) =>
    void navigate({ search: filled({ ...values, [name]: value }) });
  return (
    <search className="grid grid-cols-2 items-end gap-3 lg:grid-cols-4">
      <TextFilter label="Account, by name or id" value={values.account} onChange={set("account")} />
      <Select label="Status" value={values.status ?? ""} options={statusOptions(statuses)} onChange={set("status")} />
      <Button look="quiet" disabled={Object.keys(values).length === 0} onClick={() => void navigate({ search: {} })}>
        Clear
      </Button>
    </search>
  );
}
