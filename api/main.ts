import { runProcess } from "../shared/process.ts";
import { startApi } from "./start.ts";

/** The API process. */
await runProcess("api", startApi, (log, { port, publicUrl, metricsPort }) =>
  log.info({ port, url: publicUrl, metricsPort }, "listening"),
);
