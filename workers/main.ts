import { runProcess } from "../shared/process.ts";
import { startWorker } from "./start.ts";

/** A worker process. */
await runProcess("worker", startWorker, (log, { pools, metricsPort }) =>
  log.info({ pools, metricsPort }, "taking jobs"),
);
