import { type Clock, sleep } from "#platform/clock";
import { type GenerationCall, type JsonObject, UpstreamFailure } from "../provider.ts";

const firstWaitMs = 2_000;
const longestWaitMs = 10_000;
const longestRestMs = 60_000;
const lookMs = 30_000;
/** A job goes on while nobody can look at it: so long is it believed in. */
const patienceMs = 5 * 60_000;
/** How often it may be said that there is no such job, or no such key. */
const denials = 3;

interface Looks {
  /** A look that fails says nothing of the job. */
  readonly look: (signal: AbortSignal) => Promise<JsonObject>;
  /** Well or not; undefined for a job in a state that is unknown. */
  readonly isOver: (job: JsonObject) => boolean | undefined;
  /** Asked of each state that is seen while the caller is disconnected: whether the job is cancelled now, and costs nothing. */
  readonly withdraw: (job: JsonObject) => Promise<boolean>;
}

/** The job once it is over. Rejects with the reason of `disconnected` if it was withdrawn for that. */
export async function finished(
  clock: Clock,
  { signal, disconnected, log }: Pick<GenerationCall, "signal" | "disconnected" | "log">,
  submitted: JsonObject | undefined,
  { look, isOver, withdraw }: Looks,
): Promise<JsonObject> {
  let job = submitted;
  let waitMs = firstWaitMs;
  let failures: { readonly since: number; readonly denied: number; readonly restMs: number } | undefined;
  for (;;) {
    if (job && isOver(job)) return job;
    if (job && !failures && disconnected.aborted && (await withdraw(job))) throw disconnected.reason;
    // A job of an earlier delivery may have ended long ago.
    if (job || failures) {
      await sleepUntil(disconnected, clock, Math.max(waitMs, failures?.restMs ?? 0), signal);
      waitMs = Math.min(longestWaitMs, waitMs * 1.5);
    }
    try {
      job = await within(clock, lookMs, signal, look);
      if (isOver(job) === undefined) throw new UpstreamFailure("unavailable", "a job in a state that is unknown");
      failures = undefined;
    } catch (error) {
      if (signal.aborted || !(error instanceof UpstreamFailure)) throw error;
      const { kind, retryAfterMs = 0 } = error;
      const isDenied = kind === "misconfigured" || kind === "refused";
      const since = failures?.since ?? clock.now();
      const denied = isDenied ? (failures?.denied ?? 0) + 1 : 0;
      if (denied === denials || clock.now() - since >= patienceMs) throw error;
      failures = { since, denied, restMs: Math.min(longestRestMs, retryAfterMs) };
      log.warn({ kind, err: isDenied ? undefined : error.message }, "looking at a provider's job");
    }
  }
}

/** Ends early when that happens: the job is looked at once more, for what can be done about it then. */
async function sleepUntil(happens: AbortSignal, clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (happens.aborted) return sleep(clock, ms, signal);
  await sleep(clock, ms, AbortSignal.any([signal, happens])).catch((error: unknown) => {
    if (signal.aborted || !happens.aborted) throw error;
  });
}

/** Aborted when the outer signal is, and when the time is over. */
export async function within<T>(
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
