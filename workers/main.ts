import { CatalogError } from "#catalog";
import { systemClock } from "#platform/clock";
import { ConfigError, loadConfig } from "#platform/config";
import { createProcessLogger } from "#platform/logger";
import { onShutdown } from "#platform/shutdown";
import { startWorker } from "./start.ts";

/** A worker process: reads its configuration from the environment, and serves its pools until it is stopped. */
try {
  const config = loadConfig(process.env);
  const log = createProcessLogger("worker", config.LOG_LEVEL);
  const worker = await startWorker({ config, env: process.env, clock: systemClock, log });
  onShutdown(log, worker.shutdown);
  log.info({ pools: worker.pools }, "taking jobs");
} catch (error) {
  const known = error instanceof ConfigError || error instanceof CatalogError;
  process.stderr.write(`${known ? error.message : (error as Error).stack}\n`);
  process.exit(1);
}
