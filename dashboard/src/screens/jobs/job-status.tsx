import { isOpen, type Job } from "../../api/jobs.ts";
import { Badge, type Tone } from "../../components/badge.tsx";
import { Figure } from "../../components/card.tsx";
import { classNames } from "../../components/class-names.ts";
import { Money } from "../../components/money.tsx";
import { ProgressBar } from "../../components/progress-bar.tsx";
import { count, duration } from "../../lib/format.ts";
import { statusLabel } from "../../lib/statuses.ts";
import { useNow } from "../../lib/time.ts";

const tones: Readonly<Record<Job["status"], Tone>> = {
  queued: "plain",
  in_progress: "accent",
  completed: "good",
  failed: "bad",
  cancelled: "warn",
  expired: "warn",
};

export const JobStatus = ({ job: { status, error } }: { readonly job: Job }) => (
  <Badge tone={tones[status]}>{status === "failed" && error ? error.code : statusLabel(status)}</Badge>
);

/** The place in the queue, or how much of the work is done. */
export function JobProgress({ job: { status, queue_position: position, progress } }: { readonly job: Job }) {
  if (status === "queued")
    return <span>{position === null ? "Waiting" : position <= 1 ? "Next" : `Number ${count(position)}`}</span>;
  if (status !== "in_progress") return <span className="text-muted">–</span>;
  return (
    <span className="flex min-w-24 items-center gap-2">
      <ProgressBar label="Progress" value={progress === null ? undefined : progress / 100} />
      {progress !== null && <span className="text-xs whitespace-nowrap tabular-nums">{progress} %</span>}
    </span>
  );
}

/** The time since the job was submitted, or until it ended. */
export function Elapsed({ job }: { readonly job: Job }) {
  const now = useNow();
  const endMs = isOpen(job) || job.completed_at === null ? now : job.completed_at * 1000;
  const seconds = Math.max(0, Math.round(endMs / 1000 - job.created_at));
  return <span className="whitespace-nowrap tabular-nums">{seconds === 0 ? "< 1 s" : elapsed(seconds)}</span>;
}

const elapsed = (seconds: number) => (seconds < 60 ? `${seconds} s` : duration(seconds * 1000));

/** What one wants to know of a job at a glance. */
export const JobFigures = ({ job, className }: { readonly job: Job; readonly className?: string }) => (
  <div className={classNames("grid grid-cols-2 gap-4", className)}>
    <Figure label="Status">
      <JobStatus job={job} />
    </Figure>
    <Figure label={job.status === "queued" ? "Place in the queue" : "Progress"}>
      <JobProgress job={job} />
    </Figure>
    <Figure label="Elapsed">
      <Elapsed job={job} />
    </Figure>
    <Figure label="Cost">
      <Money usd={job.cost_usd} />
    </Figure>
  </div>
);
