import { useQuery } from "@tanstack/react-query";
import { Badge } from "../components/badge.tsx";
import { Code } from "../components/code.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { Page } from "../components/page.tsx";
import { QueryView } from "../components/query-view.tsx";
import { Table } from "../components/table.tsx";
import { Time } from "../components/time.tsx";
import { type Worker, workersQuery } from "./api.ts";
import { Id, OneLineId } from "./links.tsx";

export function Workers() {
  const workers = useQuery(workersQuery);
  return (
    <Page
      title="Workers"
      intro="Processes that run calls. Each says every second what it does; one that is silent for five is gone."
    >
      <QueryView query={workers}>
        {({ data }) =>
          data.length === 0 ? (
            <EmptyState title="No worker runs">
              <p>Calls get a 503 until one does. Start one beside the API, with the same stores and catalog:</p>
              <Code what="Command" text="npm run worker" />
            </EmptyState>
          ) : (
            <Table
              caption="Workers"
              rows={data}
              rowKey={({ id }) => id}
              columns={[
                { header: "Worker", cell: ({ id }) => <Id>{id}</Id> },
                { header: "Pools: running / all", cell: (worker) => <WorkerPools worker={worker} /> },
                { header: "Open breakers", cell: (worker) => <OpenBreakers worker={worker} /> },
                { header: "Version", cell: ({ version }) => version ?? "Unknown" },
                {
                  header: "Catalog",
                  cell: ({ catalog, same_catalog: same }) =>
                    same ? (
                      <OneLineId>{catalog.slice(0, 8)}</OneLineId>
                    ) : (
                      <Badge tone="warn">Differs from the API</Badge>
                    ),
                },
                { header: "Started", cell: ({ started_at: at }) => <Time at={at} absent="unknown" />, numeric: true },
              ]}
            />
          )
        }
      </QueryView>
    </Page>
  );
}

const WorkerPools = ({ worker: { pools } }: { readonly worker: Worker }) => (
  <ul className="flex flex-wrap gap-1.5">
    {Object.entries(pools).map(([pool, { running, free }]) => (
      <li key={pool}>
        <Badge tone={free === 0 ? "warn" : running > 0 ? "accent" : "plain"}>
          {pool} {running} / {running + free}
        </Badge>
      </li>
    ))}
  </ul>
);

function OpenBreakers({ worker: { upstreams } }: { readonly worker: Worker }) {
  const open = Object.entries(upstreams).flatMap(([id, state]) => (state === "open" ? [id] : []));
  return open.length === 0 ? "None" : <span className="text-bad">{open.join(", ")}</span>;
}
