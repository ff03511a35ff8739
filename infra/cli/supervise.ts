import { type Clock, sleep } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { Program } from "../embedded/index.ts";

const firstDelayMs = 250;
const maxDelayMs = 30_000;
/** After running this long, a program is restarted with the first delay again. */
const steadyMs = 60_000;

/** Restarts a program whenever it ends, with a growing delay while it keeps ending, until `release` is called. */
export function supervise(program: Program, deps: { readonly clock: Clock; readonly log: Logger }) {
  const { clock, log } = deps;
  const released = new AbortController();
  let delayMs = firstDelayMs;
  let startedAt = clock.now();

  async function restart(crash: string): Promise<void> {
    let reason = crash;
    if (clock.now() - startedAt >= steadyMs) delayMs = firstDelayMs;
    while (!released.signal.aborted) {
      log.error(`${program.name} ended: ${reason}. Starting it again in ${delayMs / 1000} s.`);
      try {
        await sleep(clock, delayMs, released.signal);
        released.signal.throwIfAborted();
        delayMs = Math.min(2 * delayMs, maxDelayMs);
        startedAt = clock.now();
        await program.start();
        log.info(`${program.name} runs again.`);
        return;
      } catch (error) {
        reason = error instanceof Error ? error.message : String(error);
      }
    }
  }

  program.onCrash((reason) => {
    if (!released.signal.aborted) void restart(reason);
  });
  return {
    /** From now on the program is not restarted. */
    release(): void {
      released.abort(new Error("released"));
    },
  };
}
