import type { Cancellations, Replies } from "#jobs";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { type AbortCause, Aborted } from "./providers/provider.ts";

export { type AbortCause, Aborted, isHandedOver } from "./providers/provider.ts";

/** One call from begin to end. */
export interface RunningCall {
  /** Aborts when the work is to stop, with an `Aborted` that says why. */
  readonly signal: AbortSignal;
  /** Aborts when the caller has disconnected. The work decides whether it stops for that. */
  readonly disconnected: AbortSignal;
  abort(cause: AbortCause): void;
  disconnect(): void;
  end(): void;
}

/** The paid calls that run in this process, and everything that may end one early. */
export interface Running {
  /** Without `replyTo` the call goes on when the API instance is gone. */
  begin(call: { requestId: string; replyTo?: string | undefined; deadlineAt: number }): RunningCall;
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
  const calls = new Map<string, Pick<RunningCall, "abort"> & { replyTo?: string | undefined; deadlineAt: number }>();
  let onEmpty: (() => void) | undefined;
  let stop = () => {};
  let isChecking = false;
  let isStopping = false;

  async function abortOrphans(): Promise<void> {
    if (isChecking) return;
    isChecking = true;
    try {
      const instances = [...new Set([...calls.values()].flatMap(({ replyTo }) => replyTo ?? []))];
      const alive = await Promise.all(instances.map((instance) => replies.instanceLives(instance)));
      const gone = new Set<string | undefined>(instances.filter((_, i) => !alive[i]));
      for (const call of calls.values()) if (gone.has(call.replyTo)) call.abort("gone");
    } catch (error) {
      log.warn({ err: (error as Error).message }, "API instances could not be checked");
    } finally {
      isChecking = false;
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
      calls.set(requestId, { replyTo, deadlineAt, abort });
      // BullMQ may hand out one more job while it pauses.
      if (isStopping) abort("shutdown");
      return {
        signal: controller.signal,
        disconnected: caller.signal,
        abort,
        disconnect,
        end() {
          unwatch();
          calls.delete(requestId);
          if (calls.size === 0) onEmpty?.();
        },
      };
    },
    abort: (requestId, cause) => calls.get(requestId)?.abort(cause),
    async drain(graceMs) {
      if (calls.size > 0)
        await new Promise<void>((resolve) => {
          const cancel = clock.after(graceMs, resolve);
          onEmpty = () => {
            cancel();
            resolve();
          };
        });
      isStopping = true;
      for (const call of calls.values()) call.abort("shutdown");
    },
    start() {
      stop = clock.every(1_000, () => {
        for (const call of calls.values()) if (clock.now() >= call.deadlineAt) call.abort("deadline");
        void abortOrphans();
      });
    },
    stop: () => stop(),
  };
}
