import { runProcess } from "../shared/process.ts";
import { startWorker } from "./start.ts";

/** A worker process. */
await runProcess(
  "worker",
  (deps) => startWorker({ ...deps, env: process.env }),
  (log, { pools }) => log.info({ pools }, "taking jobs"),
);
