import type { Response } from "express";
import { type DetachedCalls, isEnded, type JobView, jobCancelled } from "#detached-calls";
import { conflict } from "#errors";
import type { Files } from "#files";
import { firstWorkerEvent, responseIdOf } from "#formats";
import type { Queues, ReplyReader } from "#jobs";
import type { Money } from "#money";
import { sleep } from "#platform/clock";
import type { Uses } from "#platform/uses";
import type { EventLogs, StoredResponses } from "#stored-responses";
import type { ResponseReaders } from "../background/readers.ts";

/** Actions on jobs and on responses in the background, which are jobs. */

export interface JobActionDeps extends Uses<"clock"> {
  readonly detachedCalls: DetachedCalls;
  readonly money: Money;
  readonly queues: Pick<Queues, "removeDetached">;
  readonly reader: Pick<ReplyReader, "notify">;
  readonly responses: Pick<StoredResponses, "delete">;
  readonly files: Pick<Files, "generated">;
  readonly eventLogs: Pick<EventLogs, "close">;
  readonly responseReaders: Pick<ResponseReaders, "wait">;
}

const pollMs = { first: 100, max: 1_000 };

const notEnded = () => conflict("The job has not ended.");

export const isExpired = ({ expiresAt }: JobView, now: number) => expiresAt !== null && expiresAt.getTime() <= now;

/**
 * Waits until the job has ended, for at most this long, or until the caller disconnects. `find` throws if there is no such
 * job. Throws 429 for an account that waits too often.
 */
export async function waitForEnd<View extends JobView>(
  { clock, responseReaders }: Pick<JobActionDeps, "clock" | "responseReaders">,
  { account, res, waitMs }: { account: string; res: Response; waitMs: number },
  find: () => Promise<View>,
): Promise<View> {
  if (waitMs > 0) responseReaders.wait(res, account);
  const until = clock.now() + waitMs;
  for (let pauseMs = pollMs.first; ; pauseMs = Math.min(pollMs.max, 1.5 * pauseMs)) {
    const view = await find();
    const remainingMs = until - clock.now();
    if (isEnded(view) || remainingMs <= 0 || res.closed) return view;
    await sleep(clock, Math.min(pauseMs, remainingMs));
  }
}

/** Withdraws a job that waits, or asks its worker to stop. */
export async function cancelJob(deps: JobActionDeps, account: string, view: JobView): Promise<void> {
  if (isEnded(view)) return;
  const { requestId, job, status, background } = view;
  const { detachedCalls, money } = deps;
  const error = { fields: jobCancelled().fields(), status: "cancelled" as const };
  const withdrawn = status === "queued" ? await detachedCalls.withdraw(account, requestId, error) : undefined;
  if (withdrawn) {
    const { keyId: key, endpoint, model } = withdrawn.payload;
    const entry = await money.endUncaptured(account, requestId, {
      call: { key, endpoint, model },
      status: "cancelled",
    });
    await detachedCalls.end(account, requestId, entry);
    await deps.queues.removeDetached(job, { account, requestId });
    if (background?.keepsEvents) await deps.eventLogs.close({ account, requestId }, firstWorkerEvent - 1);
  } else await deps.reader.notify("disconnected", requestId, view.deadlineAt.getTime() - deps.clock.now());
}

/** Deletes a job that has ended, with everything that is stored of it. Throws 409 if it has not ended. */
export async function deleteJob(
  { detachedCalls, responses, files }: JobActionDeps,
  account: string,
  view: JobView,
): Promise<void> {
  const { requestId, background, createdAt, endedAt } = view;
  if (!endedAt) throw notEnded();
  // The job goes last, so that the deletion can be repeated if this process dies.
  await files.generated.deleteOf(account, requestId, { from: createdAt, to: endedAt });
  if (background) await responses.delete(account, responseIdOf(requestId));
  if (!(await detachedCalls.delete(account, requestId))) throw notEnded();
}
