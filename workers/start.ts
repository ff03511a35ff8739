import { withUpstreamKeys } from "#catalog";
import { createCancellations, createQueues, createReplies, type Pool, registerWorker } from "#jobs";
import { createArchiveObjects } from "#money";
import { createByteBudget } from "#platform/byte-budget";
import { atMost } from "#platform/clock";
import { newId } from "#platform/ids";
import { upstreamStates } from "#platform/metrics";
import { type Health, serveMetrics } from "#platform/metrics-server";
import { createProbes } from "#platform/probe";
import { connectRedis, pingRedis, startRedis } from "#platform/redis";
import type { Environment } from "#platform/secret-files";
import { createServices, type ProcessDeps } from "../shared/process.ts";
import { createCounting } from "./counting/index.ts";
import { createExecutor } from "./executors/index.ts";
import { createWorkerHealth, type WorkerHealth } from "./health.ts";
import { poolsOf, startPool } from "./pool.ts";
import { createRunning } from "./running.ts";
import { createUpstreams } from "./upstreams/index.ts";

/** The shutdown waits so long for decisions: without MongoDB they may never come, and the next worker gets the jobs. */
const maxDecisionMs = 10_000;

const starting: Health = { ok: false, body: { status: "not ready" } };

/** Connects and starts to take jobs. Returns the steps of the shutdown: stop taking jobs -> finish or abort -> flush -> close. */
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
  const executor = served.includes("maintenance") ? await createExecutor({ config, clock }) : undefined;
  const { mongo, settled, ...common } = await createServices(deps);
  const redis = connectRedis(config.REDIS_URL, "waiting", log);
  const queueRedis = connectRedis(config.REDIS_URL, "blocking", log);
  const subscriber = connectRedis(config.REDIS_URL, "blocking", log);
  await Promise.all([redis, queueRedis, subscriber].map(startRedis));

  const queues = createQueues({ redis: queueRedis, log });
  const replies = createReplies({ redis, clock });
  const cancellations = createCancellations({ subscriber, commands: redis, clock, log });
  const running = createRunning({ cancellations, replies, clock, log });
  const counting = createCounting({ clock, log });
  const upstreams = createUpstreams({
    catalog: common.catalog,
    env: withUpstreamKeys(env, common.catalog),
    clock,
    counting,
  });
  const ending = new AbortController();
  const handlerDeps = {
    ...common,
    upstreams,
    replies,
    cancellations,
    running,
    counting,
    queues,
    archive: common.money.createArchive({
      objects: createArchiveObjects(config),
      retentionDays: config.LEDGER_RETENTION_DAYS,
    }),
    memory: createByteBudget(config.WORKER_PAYLOAD_BUDGET_BYTES),
    executor,
    ending: ending.signal,
  };

  await cancellations.start();
  running.start();
  if (served.includes("maintenance")) {
    await queues.schedule();
    // Never rejects. A worker starts although storage is unavailable.
    void common.files.prepareBucket();
  }
  const observeWait = metrics.histogram("inference_queue_wait_seconds");
  const started = served.map((pool) => {
    const concurrency = config[`WORKER_CONCURRENCY_${pool.toUpperCase() as Uppercase<Pool>}`];
    return startPool(handlerDeps, {
      pool,
      concurrency,
      redis: queueRedis,
      observeWait: (seconds) => observeWait({ pool }, seconds),
    });
  });
  const registration = registerWorker({
    worker: newId("wrk"),
    redis,
    clock,
    log,
    record: () => ({
      pools: Object.fromEntries(started.map((each) => [each.pool, each.load()])),
      upstreams: upstreams.states(),
      catalog: common.catalog.hash,
      speeds: upstreams.speeds(),
    }),
  });
  await registration.write();
  const probes = createProbes({ clock, metrics }, { mongodb: () => mongo.ping(), redis: () => pingRedis(redis) });
  metrics.gauge("inference_upstream_state", () =>
    Object.entries(upstreams.states()).map(([upstream, state]) => [{ upstream }, upstreamStates[state]]),
  );
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
          return registration.stop();
        },
      },
      {
        name: "stop taking jobs",
        run: () => {
          // Another process goes on with a buyback.
          ending.abort(new Error("this process shuts down"));
          return Promise.all(started.map((pool) => pool.pause()));
        },
      },
      { name: "drain, then abort", run: () => running.drain(config.SHUTDOWN_GRACE_MS) },
      { name: "finish", run: () => atMost(clock, maxDecisionMs, Promise.all(started.map((pool) => pool.close()))) },
      { name: "settle", run: () => atMost(clock, maxDecisionMs, settled()) },
      {
        name: "close",
        run: async () => {
          running.stop();
          watch.stop();
          await queues.close();
          await Promise.all([upstreams.close(), counting.close(), executor?.close()]);
          cancellations.stop();
          redis.disconnect();
          queueRedis.disconnect();
          await mongo.close();
          metricsServer.close();
        },
      },
    ],
  };
}
