import { loadCatalog } from "#catalog";
import { createFiles } from "#files";
import { createIdempotencyStore } from "#idempotency";
import { createCancellations, createQueues, createReplies, isPool, type Pool, pools, registerWorker } from "#jobs";
import { createMoney } from "#money";
import { buybackConfig, createPayments } from "#payments";
import { createBackground } from "#platform/background";
import { createByteBudget } from "#platform/byte-budget";
import { atMost, type Clock } from "#platform/clock";
import { type Config, ConfigError } from "#platform/config";
import { newId } from "#platform/ids";
import type { Logger } from "#platform/logger";
import { connectMongo } from "#platform/mongo";
import { connectRedis, startRedis } from "#platform/redis";
import type { Step } from "#platform/shutdown";
import { createCounting } from "./counting/index.ts";
import { createExecutor } from "./executors/index.ts";
import type { HandlerDeps } from "./handlers/index.ts";
import { startPool } from "./pool.ts";
import { createRunning } from "./running.ts";
import { createUpstreams } from "./upstreams/index.ts";

export interface WorkerProcess {
  readonly pools: readonly Pool[];
  /** Stop taking jobs -> finish or abort -> flush -> close. */
  readonly shutdown: readonly Step[];
}

function poolsOf(config: Config): Pool[] {
  const named = [...new Set(config.WORKER_POOLS.split(","))];
  const unknown = named.find((pool) => !isPool(pool));
  if (unknown) throw new ConfigError(`WORKER_POOLS: there is no pool '${unknown}'; there are ${pools.join(", ")}.`);
  return named as Pool[];
}

/** The shutdown waits so long for decisions: without MongoDB they may never come, and the next worker gets the jobs. */
const maxDecisionMs = 10_000;

/** Connects, starts to take jobs, and returns how to shut down. */
export async function startWorker({
  config,
  env,
  clock,
  log,
}: {
  config: Config;
  env: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  log: Logger;
}): Promise<WorkerProcess> {
  const served = poolsOf(config);
  const catalog = loadCatalog(config.CATALOG_FILE);
  const executor = served.includes("maintenance") ? await createExecutor({ config, clock }) : undefined;
  const mongo = await connectMongo(config.MONGODB_URI, clock, log);
  const redis = connectRedis(config.REDIS_URL, "waiting", log);
  const queueRedis = connectRedis(config.REDIS_URL, "blocking", log);
  const subscriber = connectRedis(config.REDIS_URL, "blocking", log);
  await Promise.all([redis, queueRedis, subscriber].map(startRedis));

  const money = createMoney({ mongo, buyback: buybackConfig(config).terms, clock, log });
  const payments = createPayments({ config, mongo, money, clock, log });
  await Promise.all([money.prepare(), payments.prepare()]);
  const queues = createQueues({ redis: queueRedis, log });
  const replies = createReplies({ redis, clock });
  const cancellations = createCancellations({ subscriber, commands: redis, clock, log });
  const running = createRunning({ cancellations, replies, clock, log });
  const upstreams = createUpstreams({ catalog, env, clock });
  const files = createFiles({ config, mongo, money, clock, log });
  const idempotency = createIdempotencyStore({ mongo, money, files, clock });
  await Promise.all([files.prepare(), idempotency.prepare()]);
  const counting = createCounting({ clock, log });
  const ending = new AbortController();
  const background = createBackground({ log });
  const deps: HandlerDeps = {
    catalog,
    upstreams,
    money,
    files,
    idempotency,
    replies,
    cancellations,
    running,
    counting,
    queues,
    payments,
    memory: createByteBudget(config.WORKER_PAYLOAD_BUDGET_BYTES),
    executor,
    ending: ending.signal,
    background,
    clock,
    log,
  };

  await cancellations.start();
  running.start();
  if (served.includes("maintenance")) {
    await queues.schedule();
    // Never rejects. A worker starts although storage is unavailable.
    void files.prepareBucket();
  }
  const started = served.map((pool) => {
    const concurrency = config[`WORKER_CONCURRENCY_${pool.toUpperCase() as Uppercase<Pool>}`];
    return startPool(deps, { pool, concurrency, redis: queueRedis });
  });
  const registration = registerWorker({
    worker: newId("wrk"),
    redis,
    clock,
    log,
    record: () => ({
      pools: Object.fromEntries(started.map((each) => [each.pool, each.load()])),
      upstreams: upstreams.states(),
    }),
  });
  await registration.write();

  return {
    pools: served,
    shutdown: [
      { name: "unregister", run: () => registration.stop() },
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
      {
        name: "settle",
        run: () => atMost(clock, maxDecisionMs, Promise.all([background.settled(), money.settled()])),
      },
      {
        name: "close",
        run: async () => {
          running.stop();
          await queues.close();
          await Promise.all([upstreams.close(), counting.close(), executor?.close()]);
          cancellations.stop();
          redis.disconnect();
          queueRedis.disconnect();
          await mongo.close();
        },
      },
    ],
  };
}
