import type { Logger } from "./logger.ts";

/** One step of an ordered shutdown. */
export interface Step {
  readonly name: string;
  run: () => unknown;
}

/** A terminal and npm both forward Ctrl-C: two signals within this time are one. */
const duplicateSignalMs = 300;

/**
 * On SIGTERM or SIGINT runs the steps in order and exits 0; a step that fails is logged and the next one runs.
 * A second signal exits at once.
 */
export function onShutdown(log: Logger, steps: readonly Step[]): void {
  let begunAt: number | undefined;
  const shutDown = async (signal: string) => {
    if (begunAt !== undefined) {
      if (performance.now() - begunAt > duplicateSignalMs) process.exit(1);
      return;
    }
    begunAt = performance.now();
    log.info({ signal }, "shutting down");
    for (const { name, run } of steps) {
      try {
        await run();
        log.debug({ step: name }, "shutdown");
      } catch (error) {
        log.error({ err: error, step: name }, "shutdown");
      }
    }
    log.info("stopped");
    process.exit(0);
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => void shutDown(signal));
}
