import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { cancelJob, isOpen, type Job, jobQuery, jobsChanged } from "../../api/jobs.ts";
import { Button } from "../../components/button.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { JobResult } from "../jobs/job-result.tsx";
import { JobFigures } from "../jobs/job-status.tsx";

/** The job of a form: where it is, then what it made. */
export const JobRun = ({ id }: { readonly id: string }) => (
  <QueryView query={useQuery(jobQuery(id))}>{(job) => <Shown job={job} />}</QueryView>
);

function Shown({ job }: { readonly job: Job }) {
  const queries = useQueryClient();
  const stop = useMutation({ mutationFn: () => cancelJob(job.id), onSuccess: () => jobsChanged(queries) });
  return (
    <>
      <JobFigures job={job} />
      {stop.error && <ErrorNote error={stop.error} />}
      {stop.isSuccess && isOpen(job) && (
        <output className="text-muted">
          Its provider is asked to stop. If it cannot, the job completes and is charged.
        </output>
      )}
      <div className="flex flex-wrap items-center justify-between gap-3">
        <Link to="/jobs/$id" params={{ id: job.id }} className="text-accent hover:underline">
          Details of the job
        </Link>
        {isOpen(job) && (
          <Button busy={stop.isPending} onClick={() => stop.mutate()}>
            Stop
          </Button>
        )}
      </div>
      <JobResult job={job} />
    </>
  );
}
