import { type Clock, sleep } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { Program } from "../embedded/index.ts";

const firstDelayMs = 250;
const maxDelayMs = 30_000;
/** A program that has run this long is restarted with the first delay again. */
const steadyMs = 60_000;

/** Restarts a program whenever it ends, until the signal aborts. The delay grows while the program keeps ending. */
export function supervise(
  program: Program,
  { clock, log, signal }: { readonly clock: Clock; readonly log: Logger; readonly signal: AbortSignal },
): void {
  let delayMs = firstDelayMs;
  let startedAt = clock.now();

  async function restart(crash: string): Promise<void> {
    let reason = crash;
    if (clock.now() - startedAt >= steadyMs) delayMs = firstDelayMs;
    while (!signal.aborted) {
      log.error(`${program.name} ended: ${reason}. Starting it again in ${delayMs / 1000} s.`);
      try {
        await sleep(clock, delayMs, signal);
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

  program.onCrash((reason) => void restart(reason));
}
