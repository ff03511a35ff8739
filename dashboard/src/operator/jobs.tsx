import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Badge } from "../components/badge.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { Page } from "../components/page.tsx";
import { QueryView } from "../components/query-view.tsx";
import { Section } from "../components/section.tsx";
import { Table } from "../components/table.tsx";
import { Time } from "../components/time.tsx";
import { count, duration } from "../lib/format.ts";
import { type JobQueue, jobQueuesQuery, type Overview, overviewQuery } from "./api.ts";
import { AccountLink, linkClass } from "./links.tsx";

/** An account's job waits for this long before it stands out. */
const longSeconds = 15 * 60;

export function OperatorJobs() {
  return (
    <Page title="Jobs" intro="Calls for which nobody waits, and that have not ended. The longest wait comes first.">
      <QueryView query={useQuery(overviewQuery)}>{({ pools }) => <Waiting pools={pools} />}</QueryView>
      <Section title="By account">
        <QueryView query={useQuery(jobQueuesQuery)}>{({ data }) => <Queues queues={data} />}</QueryView>
      </Section>
    </Page>
  );
}

function Waiting({ pools }: { readonly pools: Overview["pools"] }) {
  if (!pools)
    return (
      <EmptyState title="Queues cannot be read">
        <p>Redis does not answer. Jobs are stored, and go on when it does.</p>
      </EmptyState>
    );
  return (
    <Section title="By pool">
      <Table
        caption="Jobs by pool"
        rows={pools.filter(({ pool }) => pool !== "maintenance" && pool !== "webhooks")}
        rowKey={({ pool }) => pool}
        columns={[
          { header: "Pool", cell: ({ pool }) => <span className="font-medium">{pool}</span> },
          { header: "Jobs waiting", cell: ({ jobs_waiting: jobs }) => count(jobs), numeric: true },
          {
            header: "Longest wait",
            cell: ({ jobs_waiting: jobs, oldest_job_wait_seconds: seconds }) =>
              jobs > 0 ? <Wait seconds={seconds} /> : "–",
            numeric: true,
          },
          { header: "Running, of any kind", cell: ({ running }) => count(running), numeric: true },
          { header: "Free slots", cell: ({ free }) => count(free), numeric: true },
        ]}
      />
    </Section>
  );
}

const Wait = ({ seconds }: { readonly seconds: number }) =>
  seconds < longSeconds ? duration(seconds * 1000) : <Badge tone="warn">{duration(seconds * 1000)}</Badge>;

function Queues({ queues }: { readonly queues: readonly JobQueue[] }) {
  if (queues.length === 0)
    return (
      <EmptyState title="No jobs are open">
        <p>A call becomes a job with the header Prefer: respond-async.</p>
      </EmptyState>
    );
  return (
    <Table
      caption="Jobs by pool and account"
      rows={queues}
      rowKey={({ pool, account }) => `${pool} ${account}`}
      columns={[
        { header: "Account", cell: ({ account }) => <AccountLink id={account} /> },
        { header: "Pool", cell: ({ pool }) => pool },
        { header: "Waiting", cell: ({ waiting }) => count(waiting), numeric: true },
        {
          header: "Oldest waiting",
          cell: ({ oldest_waiting_at: at }) => <Time at={at} absent="–" />,
          numeric: true,
        },
        { header: "Running", cell: ({ running }) => count(running), numeric: true },
        {
          header: "Oldest running",
          cell: ({ oldest_running_at: at }) => <Time at={at} absent="–" />,
          numeric: true,
        },
        {
          header: "Ended",
          cell: ({ account }) => (
            <Link to="/operator/requests" search={{ account }} className={linkClass}>
              Requests
            </Link>
          ),
        },
      ]}
    />
  );
}
