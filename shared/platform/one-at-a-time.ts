import type { Logger } from "./logger.ts";

/**
 * Skips a call while the previous one is running. During an outage of Redis, calls would otherwise pile up and all run
 * when it recovers.
 */
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
