import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { cancelJob, deleteJob, isOpen, type Job, jobQuery, jobsChanged } from "../../api/jobs.ts";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { CopiedId, Facts } from "../../components/facts.tsx";
import { Page } from "../../components/page.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { Time } from "../../components/time.tsx";
import { toast } from "../../components/toast.tsx";
import { JobResult } from "./job-result.tsx";
import { JobFigures } from "./job-status.tsx";

const route = getRouteApi("/jobs/$id");
const linkClass = "text-accent hover:underline";

export function JobDetail() {
  const { id } = route.useParams();
  return (
    <Page
      title="Job"
      intro={<CopiedId id={id} what="job id" />}
      actions={
        <Link to="/jobs" className={linkClass}>
          All jobs
        </Link>
      }
    >
      <QueryView query={useQuery(jobQuery(id))}>{(job) => <Detail job={job} />}</QueryView>
    </Page>
  );
}

function Detail({ job }: { readonly job: Job }) {
  const metadata = Object.entries(job.metadata);
  const facts = [
    { name: "Model", value: job.model },
    { name: "Endpoint", value: job.endpoint },
    { name: "Submitted", value: <Time at={job.created_at} /> },
    { name: "Began", value: <Time at={job.started_at} absent={isOpen(job) ? "not yet" : "never"} /> },
    { name: "Ended", value: <Time at={job.completed_at} absent="not yet" /> },
    ...(job.status_code === null ? [] : [{ name: "HTTP status", value: job.status_code }]),
    ...(job.expires_at === null ? [] : [{ name: "Result deleted", value: <Time at={job.expires_at} /> }]),
    ...(isOpen(job) ? [] : [{ name: "Its call", value: <CallLink job={job} /> }]),
    ...metadata.map(([name, value]) => ({ name, value: <span className="whitespace-pre-wrap">{value}</span> })),
  ];
  return (
    <>
      <JobFigures job={job} className="lg:grid-cols-4" />
      <Facts facts={facts} />
      <Actions job={job} />
      <JobResult job={job} />
    </>
  );
}

const CallLink = ({ job: { id } }: { readonly job: Job }) => (
  <Link to="/requests/$id" params={{ id: id.replace(/^job_/, "req_") }} className={linkClass}>
    Attempts and cost
  </Link>
);

function Actions({ job }: { readonly job: Job }) {
  const [asked, ask] = useState<"cancel" | "delete">();
  const queries = useQueryClient();
  const navigate = route.useNavigate();
  const close = () => ask(undefined);
  const cancel = useMutation({
    mutationFn: () => cancelJob(job.id),
    onSuccess: async ({ status }) => {
      await jobsChanged(queries);
      toast(status === "cancelled" ? "The job is cancelled" : "The job is asked to stop");
      close();
    },
  });
  const remove = useMutation({
    mutationFn: () => deleteJob(job.id),
    onSuccess: async () => {
      toast("The job and its result are deleted");
      await navigate({ to: "/jobs" });
      await jobsChanged(queries);
    },
  });
  return (
    <div>
      {isOpen(job) ? (
        <Button onClick={() => ask("cancel")}>Cancel the job</Button>
      ) : (
        <Button look="danger" onClick={() => ask("delete")}>
          Delete the job
        </Button>
      )}
      {asked === "cancel" && isOpen(job) && (
        <ConfirmDialog
          title="Stop this job?"
          action="Stop it"
          busy={cancel.isPending}
          error={cancel.error}
          onConfirm={() => cancel.mutate()}
          onClose={close}
        >
          <p>
            A job that waits costs nothing. One that runs is stopped if its provider can be; otherwise it completes and
            is charged.
          </p>
        </ConfirmDialog>
      )}
      {asked === "delete" && (
        <ConfirmDialog
          title="Delete this job?"
          action="Delete"
          busy={remove.isPending}
          error={remove.error}
          onConfirm={() => remove.mutate()}
          onClose={close}
        >
          <p>Its result can then no longer be fetched. What it cost stays on your account.</p>
        </ConfirmDialog>
      )}
    </div>
  );
}
