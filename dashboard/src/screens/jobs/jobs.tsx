import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type Job, jobsQuery, type Filters as Values } from "../../api/jobs.ts";
import { useAccountSession } from "../../api/session.ts";
import { Button } from "../../components/button.tsx";
import { Code } from "../../components/code.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Page } from "../../components/page.tsx";
import { Paged } from "../../components/paged.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { curlForJob } from "../../lib/examples.ts";
import { Filters } from "./filters.tsx";
import { Elapsed, JobProgress, JobStatus } from "./job-status.tsx";

const route = getRouteApi("/jobs");

const columns: readonly Column<Job>[] = [
  {
    header: "Submitted",
    cell: ({ id, created_at }) => (
      <Link to="/jobs/$id" params={{ id }} className="font-medium text-accent hover:underline">
        <Time at={created_at} />
      </Link>
    ),
  },
  {
    header: "Call",
    cell: ({ model, endpoint }) => (
      <span className="flex min-w-0 flex-col">
        <span className="wrap-anywhere">{model}</span>
        <span className="text-xs wrap-anywhere text-muted">{endpoint}</span>
      </span>
    ),
    wide: true,
  },
  { header: "Status", cell: (job) => <JobStatus job={job} /> },
  { header: "Progress", cell: (job) => <JobProgress job={job} /> },
  { header: "Elapsed", numeric: true, cell: (job) => <Elapsed job={job} /> },
  { header: "Cost", usd: ({ cost_usd }) => cost_usd },
];

/** The filters are in the address, so that they survive a reload and can be linked. */
export function Jobs() {
  const values = route.useSearch();
  const navigate = route.useNavigate();
  const { service } = useAccountSession();
  const isFiltered = Object.values(values).some(Boolean);
  return (
    <Page title="Jobs" intro="Calls that run without their caller. Results live 24 hours.">
      <Filters values={values} onChange={(search: Values) => void navigate({ search })} />
      <Paged
        query={useInfiniteQuery(jobsQuery(values))}
        skeleton={<Skeleton rows={8} />}
        empty={
          isFiltered ? (
            <EmptyState title="No job matches">
              <p>Take a filter off.</p>
              <Button onClick={() => void navigate({ search: {} })}>Clear the filters</Button>
            </EmptyState>
          ) : (
            <EmptyState title="No jobs yet">
              <p>Add one header to any call without a stream, and it is answered with a job at once:</p>
              <Code what="A first job" text={curlForJob(service.public_url)} />
            </EmptyState>
          )
        }
      >
        {(jobs) => <Table caption="Jobs, newest first" columns={columns} rows={jobs} rowKey={({ id }) => id} />}
      </Paged>
    </Page>
  );
}
