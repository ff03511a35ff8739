import type { Cancellations, Replies } from "#jobs";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { oneAtATime } from "#platform/one-at-a-time";
import { type AbortCause, Aborted } from "./providers/provider.ts";

export { type AbortCause, Aborted, isHandedOver } from "./providers/provider.ts";

interface BegunCall {
  readonly requestId: string;
  /** Unix milliseconds. */
  readonly deadlineAt: number;
  /** Without it the call goes on when the API instance is gone. */
  readonly replyTo?: string | undefined;
}

/** The paid calls that run in this process, and everything that may end one early. */
export function createRunning(deps: { cancellations: Cancellations; replies: Replies; clock: Clock; log: Logger }) {
  const { cancellations, replies, clock, log } = deps;
  const calls = new Map<string, { readonly call: BegunCall; readonly abort: (cause: AbortCause) => void }>();
  let onEmpty: (() => void) | undefined;
  let stop = () => {};
  let isStopping = false;

  const abortOrphans = oneAtATime(log, "API instances could not be checked", async () => {
    const instances = [...new Set([...calls.values()].flatMap(({ call }) => call.replyTo ?? []))];
    const alive = await Promise.all(instances.map((instance) => replies.instanceLives(instance)));
    const gone = new Set<string | undefined>(instances.filter((_, i) => !alive[i]));
    for (const { call, abort } of calls.values()) if (gone.has(call.replyTo)) abort("gone");
  });

  return {
    begin(call: BegunCall) {
      const { requestId } = call;
      const controller = new AbortController();
      const caller = new AbortController();
      const abort = (cause: AbortCause) => controller.abort(new Aborted(cause));
      const disconnect = () => caller.abort(new Aborted("disconnected"));
      const unwatch = cancellations.watch(requestId, (notice) =>
        notice === "disconnected" ? disconnect() : abort("ended"),
      );
      calls.set(requestId, { call, abort });
      // BullMQ may hand out one more job while it pauses.
      if (isStopping) abort("shutdown");
      return {
        /** Aborts when the work is to stop, with an `Aborted` that says why. */
        signal: controller.signal,
        /** Aborts when the caller has disconnected. The work decides whether it stops for that. */
        disconnected: caller.signal,
        abort,
        disconnect,
        end(): void {
          unwatch();
          calls.delete(requestId);
          if (calls.size === 0) onEmpty?.();
        },
      };
    },
    abort: (requestId: string, cause: AbortCause) => calls.get(requestId)?.abort(cause),
    /** Lets calls finish within the grace time, then aborts the others. */
    async drain(graceMs: number): Promise<void> {
      if (calls.size > 0)
        await new Promise<void>((resolve) => {
          const cancel = clock.after(graceMs, resolve);
          onEmpty = () => {
            cancel();
            resolve();
          };
        });
      isStopping = true;
      for (const { abort } of calls.values()) abort("shutdown");
    },
    start(): void {
      stop = clock.every(1_000, () => {
        for (const { call, abort } of calls.values()) if (clock.now() >= call.deadlineAt) abort("deadline");
        void abortOrphans();
      });
    },
    stop: () => stop(),
  };
}

export type Running = ReturnType<typeof createRunning>;
