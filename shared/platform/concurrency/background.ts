import type { Logger } from "../logger.ts";

export type Background = ReturnType<typeof createBackground>;

/** Tracks work that no caller waits for. At shutdown the process waits for it before it closes connections. */
export function createBackground({ log }: { log: Logger }) {
  const running = new Set<Promise<void>>();
  return {
    /** Logs a rejection as an error, with `what` as its message. */
    run(what: string, work: Promise<unknown>, fields?: object): void {
      const tracked = work.then(
        () => {},
        (error: unknown) => log.error({ err: error, ...fields }, what),
      );
      running.add(tracked);
      void tracked.then(() => running.delete(tracked));
    },
    /** Resolves when no work is running, including work started in the meantime. Never rejects. */
    async settled(): Promise<void> {
      while (running.size > 0) await Promise.all(running);
    },
  };
}
