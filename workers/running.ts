import type { Cancellations, Replies } from "#jobs";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { type AbortCause, Aborted } from "./providers/provider.ts";

export { type AbortCause, Aborted, isHandedOver } from "./providers/provider.ts";

interface Attempt {
  /** Absent: it goes on whoever waits. */
  readonly replyTo?: string;
  readonly deadlineAt: number;
  readonly abort: (cause: AbortCause) => void;
}

/** One attempt from begin to end. */
export interface RunningAttempt {
  /** Aborts when the attempt is to stop, with an `Aborted` that says why. */
  readonly signal: AbortSignal;
  /** Aborts when the caller has disconnected. Whether the work stops for that is for the work to say. */
  readonly disconnected: AbortSignal;
  abort(cause: AbortCause): void;
  disconnect(): void;
  end(): void;
}

/** The paid calls that run in this process, and everything that may end one early. */
export interface Running {
  begin(call: { requestId: string; replyTo?: string; deadlineAt: number }): RunningAttempt;
  abort(requestId: string, cause: AbortCause): void;
  /** Lets calls finish within the grace time, then aborts the others. */
  drain(graceMs: number): Promise<void>;
  start(): void;
  stop(): void;
}

export function createRunning(deps: {
  cancellations: Cancellations;
  replies: Replies;
  clock: Clock;
  log: Logger;
}): Running {
  const { cancellations, replies, clock, log } = deps;
  const attempts = new Map<string, Attempt>();
  let onEmpty: (() => void) | undefined;
  let stop = () => {};
  let looking = false;
  let graceIsOver = false;

  /** Once a second: deadlines, and API instances that died under their calls. */
  async function look(): Promise<void> {
    const now = clock.now();
    for (const attempt of attempts.values()) if (now >= attempt.deadlineAt) attempt.abort("deadline");
    if (looking) return;
    looking = true;
    try {
      const instances = [...new Set([...attempts.values()].flatMap(({ replyTo }) => replyTo ?? []))];
      const alive = await Promise.all(instances.map((instance) => replies.instanceLives(instance)));
      const gone = new Set(instances.filter((_, i) => !alive[i]));
      for (const attempt of attempts.values())
        if (attempt.replyTo !== undefined && gone.has(attempt.replyTo)) attempt.abort("gone");
    } finally {
      looking = false;
    }
  }

  return {
    begin({ requestId, replyTo, deadlineAt }) {
      const controller = new AbortController();
      const caller = new AbortController();
      const abort = (cause: AbortCause) => controller.abort(new Aborted(cause));
      const disconnect = () => caller.abort(new Aborted("disconnected"));
      const unwatch = cancellations.watch(requestId, (notice) =>
        notice === "disconnected" ? disconnect() : abort("ended"),
      );
      attempts.set(requestId, { ...(replyTo !== undefined && { replyTo }), deadlineAt, abort });
      // BullMQ may hand out one more job while it pauses.
      if (graceIsOver) abort("shutdown");
      return {
        signal: controller.signal,
        disconnected: caller.signal,
        abort,
        disconnect,
        end() {
          unwatch();
          attempts.delete(requestId);
          if (attempts.size === 0) onEmpty?.();
        },
      };
    },
    abort: (requestId, cause) => attempts.get(requestId)?.abort(cause),
    async drain(graceMs) {
      if (attempts.size > 0)
        await new Promise<void>((resolve) => {
          const cancel = clock.after(graceMs, resolve);
          onEmpty = () => {
            cancel();
            resolve();
          };
        });
      graceIsOver = true;
      for (const attempt of attempts.values()) attempt.abort("shutdown");
    },
    start() {
      stop = clock.every(1_000, () => {
        look().catch((error: Error) => log.warn({ err: error.message }, "looking after running calls"));
      });
    },
    stop: () => stop(),
  };
}
