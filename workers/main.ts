import { catchSignals } from "#platform/process/shutdown";

/** Entry point of a worker process. */
const signals = catchSignals();
const [{ runProcess }, { startWorker }] = await Promise.all([import("../shared/process.ts"), import("./start.ts")]);
await runProcess("worker", signals, startWorker, (log, { pools, metricsPort }) =>
  log.info({ pools, metricsPort }, "taking jobs"),
);
