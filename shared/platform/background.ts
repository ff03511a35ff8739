import type { Logger } from "./logger.ts";

/** Work that no caller waits for. At shutdown the process waits for it before it closes connections. */
export interface Background {
  /** Logs a rejection as an error, with `what` as its message. */
  run(what: string, work: Promise<unknown>, fields?: object): void;
  /** Resolves when no work is running, including work started meanwhile. Never rejects. */
  settled(): Promise<void>;
}

export function createBackground({ log }: { log: Logger }): Background {
  const running = new Set<Promise<void>>();
  return {
    run(what, work, fields) {
      const tracked = work.then(
        () => {},
        (error: unknown) => log.error({ err: error, ...fields }, what),
      );
      running.add(tracked);
      void tracked.then(() => running.delete(tracked));
    },
    async settled() {
      while (running.size > 0) await Promise.all(running);
    },
  };
}
