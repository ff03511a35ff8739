import { catchSignals } from "#platform/process/shutdown";

/** The API process. Signals are caught before anything else is imported. */
const signals = catchSignals();
const [{ runProcess }, { startApi }] = await Promise.all([import("../shared/process.ts"), import("./start.ts")]);
await runProcess("api", signals, startApi, (log, { port, publicUrl, metricsPort }) =>
  log.info({ port, url: publicUrl, metricsPort }, "listening"),
);
