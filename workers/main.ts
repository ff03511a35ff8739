import { runProcess } from "../shared/process.ts";
import { startWorker } from "./start.ts";

/** A worker process. */
await runProcess(
  "worker",
  (deps) => startWorker({ ...deps, env: process.env }),
  (log, { pools, metricsPort }) => log.info({ pools, metricsPort }, "taking jobs"),
);
