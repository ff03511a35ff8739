import type { Logger } from "../logger.ts";

/** Skips a call while the previous one runs. Otherwise calls would pile up during an outage of Redis. */
export function oneAtATime(log: Logger, failed: string, work: () => Promise<unknown>): () => Promise<void> {
  let isRunning = false;
  return async () => {
    if (isRunning) return;
    isRunning = true;
    try {
      await work();
    } catch (error) {
      log.warn({ err: (error as Error).message }, failed);
    } finally {
      isRunning = false;
    }
  };
}
