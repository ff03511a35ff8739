/** The dependencies that the API process and the worker processes have in common. */
import { createBatches } from "#batches";
import { CatalogError, loadCatalog } from "#catalog";
import { createDetachedCalls } from "#detached-calls";
import { createFiles } from "#files";
import { createIdempotencyStore } from "#idempotency";
import type { Queues } from "#jobs";
import { createMoney, parseUsd } from "#money";
import { buybackConfig, createPayments } from "#payments";
import { type Clock, systemClock } from "#platform/clock";
import { type Background, createBackground } from "#platform/concurrency/background";
import { type Config, loadConfig, secretVariables } from "#platform/config";
import { ConfigError } from "#platform/config-error";
import { createProcessLogger, type Logger } from "#platform/logger";
import { connectMongo } from "#platform/mongo/connection";
import { checkSchema, MigrationError } from "#platform/mongo/migrations";
import { createMetrics, type Metrics } from "#platform/observability/metrics";
import { type Environment, withSecretFiles } from "#platform/process/secret-files";
import type { Signals, Step } from "#platform/process/shutdown";
import { createProviderKeys } from "#provider-keys";
import { createSecrets } from "#secrets";
import { createStoredResponses } from "#stored-responses";
import { createTrafficCounter } from "#traffic";
import { createWebhooks, type Webhooks } from "#webhooks";
import { sharedSchemas } from "./migrations.ts";
import { createProcessObservers } from "./process-metrics.ts";

export interface ProcessDeps {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Configures a process from the environment, and runs it until a signal stops it. */
export async function runProcess<Started extends { readonly shutdown: readonly Step[] }>(
  name: "api" | "worker",
  signals: Signals,
  start: (deps: ProcessDeps & { readonly env: Environment }) => Promise<Started>,
  logStarted: (log: Logger, started: Started) => void,
): Promise<void> {
  try {
    const env = withSecretFiles(process.env, secretVariables);
    const config = loadConfig(env);
    const log = createProcessLogger(name, config.LOG_LEVEL);
    const metrics = createMetrics(name, systemClock);
    metrics.addRuntime();
    const started = await start({ config, env, clock: systemClock, log, metrics });
    logStarted(log, started);
    void signals.shutDown(log, started.shutdown);
  } catch (error) {
    const isKnown = [ConfigError, CatalogError, MigrationError].some((kind) => error instanceof kind);
    const { message, stack } = error as Error;
    process.stderr.write(`${isKnown ? message : stack}\n`);
    process.exit(1);
  }
}

/** Connects to MongoDB, checks its schema, and creates everything that both kinds of process build on it. */
export async function createServices({ config, clock, log, metrics }: ProcessDeps) {
  const catalog = loadCatalog(config.CATALOG_FILE, config.CATALOG_OVERLAY, { localModels: config.LOCAL_MODELS });
  metrics.gauge("inference_catalog_info", () => [[{ hash: catalog.hash }, 1]]);
  const secrets = createSecrets(config);
  const traffic = createTrafficCounter();
  const { writes, money: observer, jobs, batches: batchObserver } = createProcessObservers(metrics, catalog, traffic);
  const mongo = await connectMongo(config.MONGODB_URI, clock, log);
  await checkSchema(mongo, sharedSchemas);
  const money = createMoney({
    mongo,
    buyback: buybackConfig(config).terms,
    observer,
    recoveryMs: 2 * config.API_TIMEOUT_MS,
    lostRefundsNanoUsd: parseUsd(config.LOST_RESPONSE_REFUNDS_USD),
    clock,
    log,
  });
  const payments = createPayments({ config, mongo, money, clock, log });
  const files = createFiles({ config, mongo, money, clock, log });
  const webhooks = createWebhooks({ mongo, secrets, clock });
  const providerKeys = createProviderKeys({ mongo, clock });
  const detachedCalls = createDetachedCalls({ mongo, money, files, webhooks, observer: jobs, clock, log });
  const claimMs = config.API_TIMEOUT_MS;
  const batches = createBatches({ mongo, files, webhooks, claimMs, observer: batchObserver, clock, log });
  const idempotency = createIdempotencyStore({ mongo, money, detachedCalls, clock });
  const responses = createStoredResponses({ mongo, files, clock, log });
  const background = createBackground({ log });
  /** Waits for work in progress. During an outage of MongoDB it may never end. */
  const settled = () => Promise.all([background.settled(), money.settled(), files.settled()]);
  return {
    catalog,
    writes,
    traffic,
    mongo,
    money,
    payments,
    files,
    detachedCalls,
    batches,
    idempotency,
    responses,
    secrets,
    webhooks,
    providerKeys,
    background,
    settled,
    clock,
    log,
  };
}

/** Receivers of webhooks that cannot be enqueued now are enqueued by maintenance. */
export function enqueueWhenDue(deps: {
  webhooks: Webhooks;
  queues: Pick<Queues, "enqueueReceivers">;
  background: Background;
}): void {
  const { webhooks, queues, background } = deps;
  webhooks.whenDue((receivers) =>
    background.run("webhooks could not be enqueued; maintenance will", queues.enqueueReceivers(receivers)),
  );
}
