import { type ErrorFields, ServiceError } from "#errors";
import { responseIdOf } from "#formats";
import type { PaidJobName } from "#jobs";
import type { JsonObject } from "#json";
import { formatUsd } from "#money";
import { type BackgroundResponse, type CallStatus, isEnded, type Stored } from "./collection.ts";
import { jobCancelled, jobFailed, jobNeverBegan } from "./job-errors.ts";

export type Job = Stored &
  Required<Pick<Stored, "key" | "endpoint" | "model" | "job" | "metadata" | "deadlineAt" | "publicUrl">>;
export const isJob = (stored: Stored): stored is Job => stored.job !== undefined;

/** A job as its account sees it. */
export interface JobView {
  readonly requestId: string;
  readonly status: CallStatus;
  readonly endpoint: string;
  /** The model that answered, once it is known. */
  readonly model: string;
  readonly createdAt: Date;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  /** When the result is deleted; null until the job has ended. */
  readonly expiresAt: Date | null;
  /** From 1 to 100, while the job runs and if its provider has told. */
  readonly progress: number | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly costNanoUsd: bigint;
  /** The error that the synchronous call would have had. */
  readonly error: ErrorFields | null;
  readonly job: PaidJobName;
  readonly answerFormat: string | undefined;
  readonly background: BackgroundResponse | undefined;
  /** The latest end of the call. */
  readonly deadlineAt: Date;
  /** The base address of the service, as the API knew it when it accepted the job. */
  readonly publicUrl: string;
}

/** The errors of jobs that ended for this reason, or without a stored one. */
const errors = { cancelled: jobCancelled, expired: jobNeverBegan, failed: jobFailed } as const;

function errorOf({ status, error }: Job): ErrorFields | null {
  if (status === "queued" || status === "in_progress" || status === "completed") return null;
  return error?.fields ?? errors[status]().fields();
}

export function viewOf(stored: Job): JobView {
  const {
    _id: requestId,
    status,
    endpoint,
    createdAt,
    startedAt,
    endedAt,
    expiresAt,
    metadata,
    job,
    deadlineAt,
    publicUrl,
  } = stored;
  const ended = isEnded(stored);
  return {
    requestId,
    status,
    endpoint,
    model: stored.answer?.model ?? stored.model,
    createdAt,
    startedAt: startedAt ?? null,
    endedAt: endedAt ?? null,
    expiresAt: ended ? expiresAt : null,
    progress: ended ? null : (stored.progress ?? null),
    metadata,
    costNanoUsd: ended ? (stored.costNanoUsd ?? 0n) : 0n,
    error: errorOf(stored),
    job,
    answerFormat: stored.answerFormat,
    background: stored.background,
    deadlineAt,
    publicUrl,
  };
}

export const jobIdOf = (requestId: string): string => requestId.replace(/^req_/, "job_");
/** Returns undefined if the text is not the id of a job. */
export const requestIdOf = (jobId: string): string | undefined =>
  jobId.startsWith("job_") ? `req_${jobId.slice("job_".length)}` : undefined;

const seconds = (time: Date | null) => time && Math.floor(time.getTime() / 1_000);

export interface JobExtras {
  readonly queuePosition?: number | undefined;
  /** Set if the result is asked for; null if it is not JSON or too large. */
  readonly result?: JsonObject | null | undefined;
}

/**
 * The job object of docs/api/jobs.md. It is rendered here and not in the API, because workers send it in webhooks: its
 * receiver reads the same object as a caller who polls.
 */
export function renderJob(view: JobView, { queuePosition, result }: JobExtras = {}) {
  const id = jobIdOf(view.requestId);
  const url = `${view.publicUrl}/v1/jobs/${id}`;
  const error = view.error && new ServiceError(view.error);
  return {
    id,
    object: "job" as const,
    status: view.status,
    endpoint: view.endpoint,
    model: view.model,
    created_at: seconds(view.createdAt) ?? 0,
    started_at: seconds(view.startedAt),
    completed_at: seconds(view.endedAt),
    expires_at: seconds(view.expiresAt),
    queue_position: (view.status === "queued" ? queuePosition : undefined) ?? null,
    progress: view.progress,
    metadata: view.metadata,
    cost_usd: formatUsd(view.costNanoUsd),
    error: error && { message: error.message, type: error.type, code: error.code, param: error.param ?? null },
    status_code: view.status === "completed" ? 200 : (error?.status ?? null),
    result: result ?? null,
    result_omitted: result === null && view.status === "completed",
    status_url: url,
    result_url: `${url}/result`,
    cancel_url: `${url}/cancel`,
  };
}

/** The data of an event about a response in the background: its id, as in OpenAI's events, and the fields of a job. */
export function renderResponse(view: JobView, status: string, extras: JobExtras) {
  const { created_at, completed_at, model, metadata, cost_usd, error, result, result_omitted } = renderJob(
    view,
    extras,
  );
  const id = responseIdOf(view.requestId);
  const response = { id, object: "response" as const, status, model, metadata, created_at, completed_at };
  return { ...response, cost_usd, error, result, result_omitted };
}
