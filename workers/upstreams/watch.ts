import type { Upstream } from "#catalog";
import type { Clock } from "#platform/clock";
import { UpstreamFailure } from "../providers/provider.ts";

/** The signal of one attempt: aborted when the caller's is, and when a deadline passes (with an `UpstreamFailure`). */
export interface Watch {
  readonly signal: AbortSignal;
  /** What the promise gives, unless the deadline for it or the signal comes first. One at a time. */
  readonly within: <T>(deadline: "firstByteMs" | "silenceMs", promise: Promise<T>) => Promise<T>;
  readonly abort: (reason: unknown) => void;
  /** No deadline any more. */
  readonly close: () => void;
}

/**
 * Between two waits no silence is counted: it would be the reader's, not the upstream's. One timer for all deadlines,
 * set again only when it fires or comes too late: a stream has thousands of waits, and few need one.
 */
export function watch(clock: Clock, deadlines: Upstream["deadlines"], caller: AbortSignal): Watch {
  const controller = new AbortController();
  const { signal } = controller;
  const endsAt = clock.now() + deadlines.totalMs;
  let dueAt = endsAt;
  let awaited: "firstByteMs" | "silenceMs" | undefined;
  let firesAt = Number.POSITIVE_INFINITY;
  let stopTimer = () => {};
  let rejectWait: ((reason: unknown) => void) | undefined;

  const set = () => {
    if (dueAt >= firesAt) return;
    stopTimer();
    firesAt = dueAt;
    stopTimer = clock.after(Math.max(0, dueAt - clock.now()), () => {
      firesAt = Number.POSITIVE_INFINITY;
      if (clock.now() >= dueAt) abort(tooLate(dueAt === endsAt ? "totalMs" : (awaited ?? "totalMs"), deadlines));
      else set();
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
    set();
  }

  return {
    signal,
    within(deadline, promise) {
      awaited = deadline;
      dueAt = Math.min(endsAt, clock.now() + deadlines[deadline]);
      set();
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

const what = { firstByteMs: "no answer", silenceMs: "silence", totalMs: "not done" } as const;
const tooLate = (deadline: keyof typeof what, deadlines: Upstream["deadlines"]) =>
  new UpstreamFailure("timeout", `${what[deadline]} for ${deadlines[deadline]} ms`);
