import type { JsonObject } from "#json";
import { type Clock, sleep } from "#platform/clock";
import { type Generated, type GenerationCall, isHandedOver, shownInLog, UpstreamFailure } from "../provider.ts";

/** The protocol of one kind of provider job. A job is represented by the provider's last answer about it. */
export interface JobProtocol {
  submit(): Promise<JsonObject>;
  idOf(submitted: JsonObject): unknown;
  /** A poll that fails does not fail the job. */
  poll(id: string, signal: AbortSignal): Promise<JsonObject>;
  /** The values of a job's `status` while it is queued or runs, and once it has ended. */
  readonly running: readonly unknown[];
  readonly ended: readonly unknown[];
  /** The percentage of a running job that is done, as its provider tells it. Providers that do not tell it omit this. */
  progressOf?(job: JsonObject): unknown;
  /** Stores the files of a job that has ended. Throws if it failed. */
  collect(job: JsonObject, id: string): Promise<Generated>;
  /** Cancels the job as far as the provider supports it. The outcome is only logged. */
  cancel(id: string, signal: AbortSignal): Promise<void>;
  /**
   * Cancels a job in this state if its provider documents that it bills nothing then. Resolves with whether it did.
   * Providers that document no such state omit it.
   */
  cancelUnbilled?(job: JsonObject, id: string, signal: AbortSignal): Promise<boolean>;
}

const cancelTimeoutMs = 5_000;
const maxIdLength = 1_000;

const firstPauseMs = 2_000;
const maxPauseMs = 10_000;
const maxRetryAfterMs = 60_000;
const pollTimeoutMs = 30_000;
/** A job is assumed to run on for this long while polls fail. */
const maxFailingMs = 5 * 60_000;
/** A job counts as failed after this many refused polls in a row (no such job, no such key). */
const maxDenials = 3;

/**
 * Submits a job once and polls it until it ends; another delivery of the call may continue polling. A job that no
 * delivery will continue is canceled. After its caller has disconnected, a job is canceled while that is free, and the call
 * rejects with the reason of `disconnected`; else it runs to its end.
 */
export async function runJob(clock: Clock, call: GenerationCall, jobs: JobProtocol): Promise<Generated> {
  const { signal, disconnected, log } = call;
  const submitted = call.job === undefined ? await jobs.submit() : undefined;
  // A job takes minutes, and its uploads have already been sent.
  for (const file of call.uploads.values()) file.release();
  const id = call.job ?? checkedId(jobs.idOf(submitted ?? {}));
  let isCanceled = false;

  const cancelUnbilled = async (job: JsonObject) => {
    const cancel = async (limit: AbortSignal) => jobs.cancelUnbilled?.(job, id, limit) ?? false;
    try {
      isCanceled = await withTimeout(clock, cancelTimeoutMs, signal, cancel);
    } catch (error) {
      signal.throwIfAborted();
      log.debug(shownInLog(error), "the job of a disconnected caller could not be canceled");
    }
    if (isCanceled) throw disconnected.reason;
  };

  const finished = async (): Promise<JsonObject> => {
    let job = submitted;
    let pauseMs = firstPauseMs;
    let failures: { readonly since: number; readonly denials: number; readonly retryAfterMs: number } | undefined;
    for (;;) {
      if (job && jobs.ended.includes(job.status)) return job;
      if (job && !failures && disconnected.aborted) await cancelUnbilled(job);
      // The job of an earlier delivery may already have ended, so its first poll does not wait.
      if (job || failures) {
        await sleepUntil(disconnected, clock, Math.max(pauseMs, failures?.retryAfterMs ?? 0), signal);
        pauseMs = Math.min(maxPauseMs, pauseMs * 1.5);
      }
      try {
        job = await withTimeout(clock, pollTimeoutMs, signal, (limit) => jobs.poll(id, limit));
        const isRunning = jobs.running.includes(job.status);
        if (!isRunning && !jobs.ended.includes(job.status))
          throw new UpstreamFailure("unavailable", "a job in an unknown state");
        failures = undefined;
        if (isRunning && jobs.progressOf) call.reportProgress?.(jobs.progressOf(job));
      } catch (error) {
        if (signal.aborted || !(error instanceof UpstreamFailure)) throw error;
        const { kind, retryAfterMs = 0 } = error;
        const isDenied = kind === "misconfigured" || kind === "refused";
        const since = failures?.since ?? clock.now();
        const denials = isDenied ? (failures?.denials ?? 0) + 1 : 0;
        if (denials === maxDenials || clock.now() - since >= maxFailingMs) throw error;
        failures = { since, denials, retryAfterMs: Math.min(maxRetryAfterMs, retryAfterMs) };
        log.warn(shownInLog(error), "polling a provider's job failed");
      }
    }
  };

  try {
    if (submitted) await call.remember(id);
    return await jobs.collect(await finished(), id);
  } catch (error) {
    if (!isCanceled && !isHandedOver(signal))
      withTimeout(clock, cancelTimeoutMs, undefined, (limit) => jobs.cancel(id, limit)).catch((failure: Error) =>
        log.debug(shownInLog(failure), "an abandoned job could not be canceled"),
      );
    throw error;
  }
}

function checkedId(id: unknown): string {
  if (typeof id === "string" && id !== "" && id.length <= maxIdLength) return id;
  throw new UpstreamFailure("unavailable", "a job without an id");
}

/** Resolves early when `event` aborts: the job is polled at once, because it may still be canceled without a bill. */
async function sleepUntil(event: AbortSignal, clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (event.aborted) return sleep(clock, ms, signal);
  await sleep(clock, ms, AbortSignal.any([signal, event])).catch((error: unknown) => {
    if (signal.aborted || !event.aborted) throw error;
  });
}

async function withTimeout<T>(
  clock: Clock,
  ms: number,
  outer: AbortSignal | undefined,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  const stop = clock.after(ms, () => limit.abort(new UpstreamFailure("timeout", `no answer for ${ms} ms`)));
  try {
    return await run(outer ? AbortSignal.any([outer, limit.signal]) : limit.signal);
  } finally {
    stop();
  }
}
