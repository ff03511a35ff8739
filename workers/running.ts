import type { Cancellations, Replies, Reply } from "#jobs";
import type { Clock } from "#platform/clock";
import { oneAtATime } from "#platform/concurrency/one-at-a-time";
import type { Logger } from "#platform/logger";
import { type AbortCause, Aborted } from "./providers/provider.ts";

export { type AbortCause, Aborted, isHandedOver } from "./providers/provider.ts";

interface BegunCall {
  readonly requestId: string;
  /** Unix milliseconds. */
  readonly deadlineAt: number;
  /** Unix milliseconds at which the call is cancelled, as by its caller. */
  readonly cancelAt?: number | undefined;
  /** If undefined, the call continues when the API instance is gone. */
  readonly replyTo?: string | undefined;
}

/** The paid calls that run in this process, and everything that may end one early. */
export function createRunning(deps: { cancellations: Cancellations; replies: Replies; clock: Clock; log: Logger }) {
  const { cancellations, replies, clock, log } = deps;
  interface RunningCall {
    readonly call: BegunCall;
    readonly abort: (cause: AbortCause) => void;
    readonly disconnect: () => void;
  }
  const calls = new Map<string, RunningCall>();
  let stop = () => {};
  let isStopping = false;

  const abortOrphans = oneAtATime(log, "API instances could not be checked", async () => {
    const instances = [...new Set([...calls.values()].flatMap(({ call }) => call.replyTo ?? []))];
    const alive = await Promise.all(instances.map((instance) => replies.instanceResponds(instance)));
    const gone = new Set<string | undefined>(instances.filter((_, i) => !alive[i]));
    for (const { call, abort } of calls.values()) if (gone.has(call.replyTo)) abort("gone");
  });

  return {
    begin(call: BegunCall) {
      const { requestId } = call;
      const controller = new AbortController();
      const caller = new AbortController();
      let reply: Reply | undefined;
      const abort = (cause: AbortCause) => {
        controller.abort(new Aborted(cause));
        reply?.resume();
      };
      const disconnect = () => {
        caller.abort(new Aborted("disconnected"));
        reply?.resume();
      };
      const unwatch = cancellations.watch(requestId, (notice) => {
        switch (notice) {
          case "disconnected":
            return disconnect();
          case "cancelled":
            return abort("ended");
          case "pause":
            // The end of a call that was aborted or disconnected is not held back.
            return controller.signal.aborted || caller.signal.aborted ? undefined : reply?.pause();
          case "resume":
            return reply?.resume();
        }
      });
      calls.set(requestId, { call, abort, disconnect });
      // If Redis is unavailable, BullMQ may hand out a job long after it was paused.
      if (isStopping) abort("shutdown");
      return {
        /** Aborts when the work must stop, with an `Aborted` that says why. */
        signal: controller.signal,
        /** Aborts when the caller has disconnected. The work decides whether to stop. */
        disconnected: caller.signal,
        abort,
        disconnect,
        /** Sets the reply that the API may pause from now on. */
        replies(through: Reply): void {
          reply = through;
        },
        end(): void {
          unwatch();
          reply?.resume();
          calls.delete(requestId);
        },
      };
    },
    abort: (requestId: string, cause: AbortCause) => calls.get(requestId)?.abort(cause),
    /** Aborts all calls, and those that begin later. */
    abortAll(): void {
      isStopping = true;
      for (const { abort } of calls.values()) abort("shutdown");
    },
    start(): void {
      stop = clock.every(1_000, () => {
        const now = clock.now();
        for (const { call, abort, disconnect } of calls.values()) {
          if (now >= call.deadlineAt) abort("deadline");
          else if (call.cancelAt !== undefined && now >= call.cancelAt) disconnect();
        }
        void abortOrphans();
      });
    },
    stop: () => stop(),
  };
}

export type Running = ReturnType<typeof createRunning>;
