import type { Upstream } from "#catalog";
import type { Clock } from "#platform/clock";
import { UpstreamFailure } from "../providers/provider.ts";

type Limits = Upstream["deadlines"];

/**
 * The deadlines of one attempt. The signal aborts when the caller's does, and when a deadline passes (with an
 * `UpstreamFailure`).
 *
 * No silence is counted between two calls of `within`: then the reader is slow, not the upstream. One timer serves all
 * deadlines and is set again only when it fires or would fire too late: a stream has thousands of waits.
 */
export function startDeadlines(clock: Clock, limits: Limits, caller: AbortSignal) {
  const controller = new AbortController();
  const { signal } = controller;
  const endsAt = clock.now() + limits.totalMs;
  let dueAt = endsAt;
  let awaited: "firstByteMs" | "silenceMs" | undefined;
  let firesAt = Number.POSITIVE_INFINITY;
  let stopTimer = () => {};
  let rejectWait: ((reason: unknown) => void) | undefined;

  const setTimer = () => {
    if (dueAt >= firesAt) return;
    stopTimer();
    firesAt = dueAt;
    stopTimer = clock.after(Math.max(0, dueAt - clock.now()), () => {
      firesAt = Number.POSITIVE_INFINITY;
      if (clock.now() < dueAt) return setTimer();
      const passed = dueAt === endsAt ? "totalMs" : (awaited ?? "totalMs");
      abort(new UpstreamFailure("timeout", `${descriptions[passed]} for ${limits[passed]} ms`));
    });
  };
  const close = () => {
    stopTimer();
    firesAt = Number.NEGATIVE_INFINITY;
    caller.removeEventListener("abort", onCallerAbort);
  };
  const abort = (reason: unknown) => {
    close();
    controller.abort(reason);
    rejectWait?.(reason);
  };
  const onCallerAbort = () => abort(caller.reason);

  if (caller.aborted) controller.abort(caller.reason);
  else {
    caller.addEventListener("abort", onCallerAbort, { once: true });
    setTimer();
  }

  return {
    signal,
    /** Resolves with the promise unless its deadline or the signal comes first. Calls must not overlap. */
    within: <T>(deadline: "firstByteMs" | "silenceMs", promise: Promise<T>): Promise<T> => {
      awaited = deadline;
      dueAt = Math.min(endsAt, clock.now() + limits[deadline]);
      setTimer();
      return new Promise((resolve, reject) => {
        rejectWait = reject;
        if (signal.aborted) reject(signal.reason);
        promise.then((value) => {
          dueAt = endsAt;
          resolve(value);
        }, reject);
      });
    },
    abort,
    close,
  };
}

const descriptions: Record<keyof Limits, string> = {
  firstByteMs: "no answer",
  silenceMs: "silence",
  totalMs: "not done",
};
