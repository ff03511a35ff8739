import type { Response } from "express";
import { z } from "zod";
import { callStatuses, isEnded, type JobView, jobIdOf, renderJob } from "#detached-calls";
import { answerJson } from "../http/answer.ts";

const jobError = z.object({
  message: z.string(),
  type: z.string(),
  code: z.string(),
  param: z.string().nullable(),
});

const seconds = z.int().describe("unix seconds");

/** A job (docs/api/jobs.md), as `renderJob` renders it. */
export const jobObject = z
  .object({
    id: z.string().meta({ example: "job_2kT9vQ4mXw7pLr3sZb8n" }),
    object: z.literal("job"),
    status: z.enum(callStatuses),
    endpoint: z.string(),
    model: z.string().describe("The model that answered, once it is known"),
    created_at: seconds,
    started_at: seconds.nullable(),
    completed_at: seconds.nullable().describe("When the job ended, whatever its status"),
    expires_at: seconds.nullable().describe("When the result is deleted, 24 hours after the end"),
    queue_position: z.int().nullable().describe("While the job is queued: its approximate place in the queue, from 1"),
    progress: z.int().min(0).max(100).nullable().describe("Percent, while the job runs and if the provider reports it"),
    metadata: z.record(z.string(), z.string()),
    cost_usd: z.string().meta({ example: "12.5" }),
    error: jobError.nullable().describe("The error that the synchronous call would have had"),
    status_code: z.int().nullable().describe("The HTTP status that the synchronous call would have had"),
    result: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe("With `include=result`: a JSON result of at most 256 KB"),
    result_omitted: z.boolean().describe("The result was asked for, but it is not JSON, or larger than 256 KB"),
    status_url: z.url(),
    result_url: z.url(),
    cancel_url: z.url(),
  })
  .meta({ id: "Job" });

/** Seconds after which a caller should look again: a tenth of the job's age. */
export function retryAfterOf({ createdAt, status }: JobView, now: number): number | undefined {
  if (isEnded({ status })) return undefined;
  const ageSeconds = (now - createdAt.getTime()) / 1_000;
  return Math.min(60, Math.max(1, Math.ceil(ageSeconds / 10)));
}

/** Answers 202 with a job that has been accepted. */
export function answerAccepted(res: Response, view: JobView, now: number): void {
  res.status(202).set({
    location: `${view.publicUrl}/v1/jobs/${jobIdOf(view.requestId)}`,
    "preference-applied": "respond-async",
    "retry-after": String(retryAfterOf(view, now) ?? 1),
  });
  answerJson(res, JSON.stringify(renderJob(view)));
}
