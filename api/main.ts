import { CatalogError } from "#catalog";
import { systemClock } from "#platform/clock";
import { ConfigError, loadConfig } from "#platform/config";
import { createProcessLogger } from "#platform/logger";
import { onShutdown } from "#platform/shutdown";
import { startApi } from "./start.ts";

/** The API process: reads its configuration from the environment, and serves until a signal stops it. */
try {
  const config = loadConfig(process.env);
  const log = createProcessLogger("api", config.LOG_LEVEL);
  const api = await startApi({ config, clock: systemClock, log });
  onShutdown(log, api.shutdown);
  log.info({ port: api.port, url: api.publicUrl }, "listening");
} catch (error) {
  const known = error instanceof ConfigError || error instanceof CatalogError;
  process.stderr.write(`${known ? error.message : (error as Error).stack}\n`);
  process.exit(1);
}
