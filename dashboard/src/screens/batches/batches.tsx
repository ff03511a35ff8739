import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { type Batch, batchesQuery, kindName } from "../../api/batches.ts";
import { useAccountSession } from "../../api/session.ts";
import { BatchCalls, BatchProgress, BatchStatus } from "../../components/batch-state.tsx";
import { Code } from "../../components/code.tsx";
import { DropZone } from "../../components/drop-zone.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Money } from "../../components/money.tsx";
import { Page } from "../../components/page.tsx";
import { Paged } from "../../components/paged.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { curlForBatch } from "../../lib/examples.ts";
import { BatchPace } from "./batch-pace.tsx";
import { NewBatchDialog } from "./new-batch-dialog.tsx";

const columns: readonly Column<Batch>[] = [
  {
    header: "Created",
    cell: ({ id, created_at }) => (
      <Link to="/batches/$id" params={{ id }} className="font-medium text-accent hover:underline">
        <Time at={created_at} />
      </Link>
    ),
  },
  { header: "Kind", cell: (batch) => <span className="whitespace-nowrap">{kindName(batch)}</span> },
  {
    header: "Calls",
    cell: ({ model, endpoint }) => <BatchCalls model={model} endpoint={endpoint} />,
    wide: true,
  },
  { header: "Status", cell: ({ status, x_paused: paused }) => <BatchStatus status={status} paused={paused} /> },
  {
    header: "Progress",
    cell: ({ status, request_counts: counts }) => <BatchProgress status={status} {...counts} />,
    wide: true,
  },
  { header: "Rate", numeric: true, cell: (batch) => <BatchPace batch={batch} /> },
  { header: "Cost so far", usd: ({ x_cost_usd }) => x_cost_usd },
  {
    header: "At most",
    numeric: true,
    // The estimate is known once the file is validated.
    cell: ({ in_progress_at: began, x_estimated_max_cost_usd: most }) => (began === null ? "–" : <Money usd={most} />),
  },
];

export function Batches() {
  const { service } = useAccountSession();
  const [file, choose] = useState<File>();
  return (
    <Page title="Batches" intro="Files of calls that run when workers are idle, within 24 hours.">
      <DropZone
        what="a file"
        note="JSON lines, one call each: up to 50,000 lines and 200 MB."
        accept=".jsonl,.ndjson,.json,.txt"
        onFiles={([first]) => choose(first)}
      />
      {file && <NewBatchDialog file={file} onClose={() => choose(undefined)} />}
      <Paged
        query={useInfiniteQuery(batchesQuery)}
        skeleton={<Skeleton rows={8} />}
        empty={
          <EmptyState title="No batches yet">
            <p>Upload a file here, or send the calls themselves:</p>
            <Code what="A first batch" text={curlForBatch(service.public_url)} />
          </EmptyState>
        }
      >
        {(batches) => (
          <Table caption="Batches, newest first" columns={columns} rows={batches} rowKey={({ id }) => id} />
        )}
      </Paged>
    </Page>
  );
}
