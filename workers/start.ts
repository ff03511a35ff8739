import { withUpstreamKeys } from "#catalog";
import { createClusterStats } from "#cluster-stats";
import { createCancellations, createQueues, createReplies, type Pool, readWorkers, registerWorker } from "#jobs";
import { createKeyStore } from "#key-records";
import { createArchiveObjects, parseUsd } from "#money";
import { createByteBudget } from "#platform/byte-budget";
import { atMost } from "#platform/clock";
import { oneAtATime } from "#platform/concurrency/one-at-a-time";
import { newId } from "#platform/ids";
import { type Health, serveMetrics } from "#platform/observability/metrics-server";
import { createProbes } from "#platform/observability/probe";
import { startTracing } from "#platform/observability/tracing";
import type { Environment } from "#platform/process/secret-files";
import { createUtilization } from "#platform/process/utilization";
import { connectRedis, pingRedis, startRedis } from "#platform/redis";
import { createEventLogs } from "#stored-responses";
import { startTraffic } from "#traffic";
import { createServices, enqueueWhenDue, type ProcessDeps } from "../shared/process.ts";
import { createCounting } from "./counting/index.ts";
import { createExecutor } from "./executors/index.ts";
import { createWorkerHealth, type WorkerHealth } from "./health.ts";
import { createAttemptObserver, observe } from "./metrics.ts";
import { poolsOf, startPool } from "./pool.ts";
import { createProviderKeyChecker } from "./provider-keys/index.ts";
import { createRunning } from "./running.ts";
import { createUpstreams } from "./upstreams/index.ts";
import { createWebhookSender } from "./webhooks/index.ts";

/**
 * If Redis is unavailable, this worker's record expires by itself, and a job may be handed out after the shutdown has
 * stopped waiting.
 */
const maxRedisMs = 2_000;
/**
 * Maximum time that the shutdown waits for costs to be captured: without MongoDB that may never happen, and the next worker
 * gets the jobs.
 */
const maxCaptureMs = 10_000;

/** API instances may begin to use more shards. */
const shardsMs = 1_000;
const schedulesMs = 5_000;

const receiversPerAttempt = 10;

const starting: Health = { ok: false, body: { status: "not ready" } };

/** Connects and starts to take jobs. Returns the steps of the shutdown: stop taking jobs -> drain -> abort -> flush -> close. */
export async function startWorker(deps: ProcessDeps & { env: Environment }) {
  const { config, env, clock, log, metrics } = deps;
  const served = poolsOf(config);
  let health: WorkerHealth | undefined;
  const metricsServer = await serveMetrics({
    config,
    metrics,
    log,
    probes: {
      "/livez": () => health?.live() ?? { ok: true, body: { status: "live" } },
      "/readyz": () => health?.ready() ?? starting,
    },
  });
  const tracing = await startTracing(config, { process: "worker", clock, log });
  const executor = served.includes("maintenance") ? await createExecutor({ config, clock }) : undefined;
  const { mongo, settled, ...common } = await createServices(deps);
  const redis = connectRedis(config, "waiting", log);
  const queueRedis = connectRedis(config, "blocking", log);
  const subscriber = connectRedis(config, "subscribing", log);
  await Promise.all([redis, queueRedis, subscriber].map(startRedis));

  const queues = createQueues({ redis: queueRedis, log, chatShards: config.CHAT_SHARDS });
  const replies = createReplies({
    redis,
    apiTimeoutMs: config.API_TIMEOUT_MS,
    observe: common.writes.frames,
    clock,
  });
  const eventLogs = createEventLogs({ redis, clock, log });
  const cancellations = createCancellations({ subscriber, commands: redis, clock, log });
  const running = createRunning({ cancellations, replies, clock, log });
  const counting = createCounting({ clock, log });
  const upstreamEnv = withUpstreamKeys(env, common.catalog);
  const upstreams = createUpstreams({
    catalog: common.catalog,
    env: upstreamEnv,
    providerKeys: common.providerKeys,
    secrets: common.secrets,
    clock,
    log,
    counting,
    lineShare: config.BATCH_POOL_PERCENT / 100,
    observeAttempts: createAttemptObserver(metrics, common.traffic),
  });
  const countPayments = metrics.counter("inference_x402_payments_total");
  const countTopups = metrics.counter("inference_topups_total");
  const countJobs = metrics.counter("inference_jobs_recovered_total");
  const countProviderLines = metrics.counter("inference_provider_batch_lines_total");
  const memory = createByteBudget(config.WORKER_PAYLOAD_BUDGET_BYTES);
  const ending = new AbortController();
  enqueueWhenDue({ ...common, queues });
  const webhookSender = createWebhookSender({
    ...common,
    sending: common.webhooks.sending,
    config,
    metrics,
    ending: ending.signal,
  });
  const traffic = startTraffic({ counter: common.traffic, redis, clock, log });
  const handlerDeps = {
    ...common,
    byokFeeBps: config.BYOK_FEE_BPS,
    byokFreeNanoUsd: parseUsd(config.BYOK_FREE_USD_MONTH) ?? 0n,
    keyStore: createKeyStore({ mongo, clock }),
    webhookSender,
    providerKeyChecker: createProviderKeyChecker({ ...common, env: upstreamEnv, counting }),
    upstreams,
    replies,
    eventLogs,
    cancellations,
    running,
    counting,
    queues,
    memory,
    clusterStats: createClusterStats({ redis, clock }),
    archive: common.money.createArchive({
      objects: createArchiveObjects(config),
      retentionDays: config.LEDGER_RETENTION_DAYS,
    }),
    observePayments: (outcome: string, count: number) => countPayments({ outcome }, count),
    observeTopups: (outcome: string, count: number) => countTopups({ outcome }, count),
    observeProviderLines: (upstream: string, outcome: string, lines: number) =>
      countProviderLines({ upstream, outcome }, lines),
    observeJobs: (outcome: string) => countJobs({ outcome }),
    executor,
    readWorkers: () => readWorkers({ redis, clock }),
    readAttempts: () => traffic.readUpstreams("minute"),
    operatorEventsAccount: config.OPERATOR_ACCOUNT,
    providerPollMs: config.PROVIDER_BATCH_POLL_SECONDS * 1_000,
    ending: ending.signal,
    tracing,
  };

  await queues.readShards();
  await cancellations.start();
  running.start();
  if (served.includes("maintenance")) {
    await queues.schedule();
    // This never rejects: a worker starts even if storage is unavailable.
    void common.files.prepareBucket();
  }
  const observeWait = metrics.histogram("inference_queue_wait_seconds");
  const started = served.map((pool) => {
    const atOnce = config[`WORKER_CONCURRENCY_${pool.toUpperCase() as Uppercase<Pool>}`];
    // A receiver of webhooks that waits for its turn needs no connection.
    const concurrency = pool === "webhooks" ? receiversPerAttempt * atOnce : atOnce;
    return startPool(handlerDeps, {
      pool,
      queueNames: queues.namesOf(pool),
      concurrency,
      lockMs: config.JOB_LOCK_MS,
      redis: queueRedis,
      observeWait: (seconds) => observeWait({ pool }, seconds),
    });
  });
  const followShards = oneAtATime(log, "the shards of the chat pool could not be read", async () => {
    await queues.readShards();
    for (const each of started) for (const name of queues.namesOf(each.pool)) each.serve(name);
  });
  const stopFollowing = clock.every(shardsMs, () => void followShards());
  const keepScheduled = oneAtATime(log, "the scheduled jobs could not be checked", () => queues.keepScheduled());
  const stopScheduling = served.includes("maintenance") && clock.every(schedulesMs, () => void keepScheduled());
  const startedAt = clock.now();
  const utilization = createUtilization();
  const registration = registerWorker({
    worker: newId("wrk"),
    redis,
    clock,
    log,
    record: () => ({
      version: metrics.version,
      startedAt,
      pools: Object.fromEntries(started.map((each) => [each.pool, each.load()])),
      utilization: utilization(),
      upstreams: upstreams.states(),
      details: upstreams.details(),
      catalog: common.catalog.hash,
      speeds: upstreams.speeds(),
    }),
  });
  await registration.write();
  const probes = createProbes({ clock, metrics }, { mongodb: () => mongo.ping(), redis: () => pingRedis(redis) });
  observe(metrics, upstreams, memory);
  const watch = createWorkerHealth({ pools: started, queues, probes, clock, log });
  health = watch;

  return {
    pools: served,
    metricsPort: metricsServer.port,
    shutdown: [
      {
        name: "unregister",
        run: () => {
          watch.drain();
          return atMost(clock, maxRedisMs, registration.stop());
        },
      },
      {
        name: "stop taking jobs",
        run: () => {
          // Another process continues a buyback.
          ending.abort(new Error("this process shuts down"));
          return atMost(clock, maxRedisMs, Promise.all(started.map((pool) => pool.pause())));
        },
      },
      {
        name: "drain",
        run: () => atMost(clock, config.DRAIN_GRACE * 1_000, Promise.all(started.map((pool) => pool.idle()))),
      },
      { name: "abort", run: async () => running.abortAll() },
      { name: "finish", run: () => atMost(clock, maxCaptureMs, Promise.all(started.map((pool) => pool.close()))) },
      { name: "settle", run: () => atMost(clock, maxCaptureMs, settled()) },
      {
        name: "close",
        run: async () => {
          running.stop();
          stopFollowing();
          if (stopScheduling) stopScheduling();
          watch.stop();
          await queues.close();
          await Promise.all([upstreams.close(), webhookSender.close(), counting.close(), executor?.close()]);
          cancellations.stop();
          await atMost(clock, maxRedisMs, traffic.stop());
          redis.disconnect();
          queueRedis.disconnect();
          await mongo.close();
          metricsServer.close();
        },
      },
      { name: "send traces", run: () => tracing?.close() },
    ],
  };
}
