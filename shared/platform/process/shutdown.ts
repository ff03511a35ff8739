import type { Logger } from "../logger.ts";

export interface Step {
  readonly name: string;
  run: () => unknown;
}

/** A terminal and npm both forward Ctrl-C: two signals within this time count as one. */
const duplicateSignalMs = 300;
/** A process that receives a signal during startup has this long to finish starting and to shut down in order. */
const startMs = 5_000;

/**
 * Catches SIGTERM and SIGINT. Call it before anything else is loaded: process 1 of a container ignores signals that it
 * does not catch, and would then run until it is killed. A second signal exits immediately.
 */
export function catchSignals() {
  const first = Promise.withResolvers<string>();
  let begunAt: number | undefined;
  let giveUp: NodeJS.Timeout | undefined;
  const begin = (signal: string) => {
    if (begunAt !== undefined) {
      if (performance.now() - begunAt > duplicateSignalMs) process.exit(1);
      return;
    }
    begunAt = performance.now();
    // No work was taken yet, so nothing is lost. A store that startup waits for may never respond.
    giveUp = setTimeout(() => process.exit(0), startMs);
    first.resolve(signal);
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, begin);

  return {
    /**
     * Call it once the process has started. At the first signal, which may already have arrived, runs the steps in
     * order and exits 0. Failed steps are logged.
     */
    async shutDown(log: Logger, steps: readonly Step[]): Promise<void> {
      const signal = await first.promise;
      clearTimeout(giveUp);
      log.info({ signal }, "shutting down");
      for (const { name, run } of steps) {
        try {
          await run();
          log.debug({ step: name }, "a step of the shutdown is complete");
        } catch (error) {
          log.error({ err: error, step: name }, "a step of the shutdown failed");
        }
      }
      log.info("stopped");
      process.exit(0);
    },
  };
}

export type Signals = ReturnType<typeof catchSignals>;
