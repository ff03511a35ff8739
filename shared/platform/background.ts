import type { Logger } from "./logger.ts";

/** Work that no caller waits for. A process waits for it at shutdown, before it closes what the work needs. */
export interface Background {
  /** Logs a rejection as an error, with `what` as its message. */
  run(what: string, work: Promise<unknown>, fields?: object): void;
  /** Resolves once nothing is under way, including what is started meanwhile. Never rejects. */
  settled(): Promise<void>;
}

export function createBackground({ log }: { log: Logger }): Background {
  const underWay = new Set<Promise<void>>();
  return {
    run(what, work, fields) {
      const tracked = work.then(
        () => {},
        (error: unknown) => log.error({ err: error, ...fields }, what),
      );
      underWay.add(tracked);
      void tracked.then(() => underWay.delete(tracked));
    },
    async settled() {
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}
