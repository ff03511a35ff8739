import { loadCatalog } from "#catalog";
import { createFiles } from "#files";
import { createIdempotencyStore } from "#idempotency";
import { announce, createCancellations, createQueues, createReplies, isPool, type Pool, pools } from "#jobs";
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
  /** stop taking -> finish or abort -> flush -> close. */
  readonly shutdown: readonly Step[];
}

const concurrencyOf = (config: Config): Readonly<Record<Pool, number>> => ({
  chat: config.WORKER_CONCURRENCY_CHAT,
  embeddings: config.WORKER_CONCURRENCY_EMBEDDINGS,
  image: config.WORKER_CONCURRENCY_IMAGE,
  media: config.WORKER_CONCURRENCY_MEDIA,
  maintenance: config.WORKER_CONCURRENCY_MAINTENANCE,
});

function poolsOf(config: Config): Pool[] {
  const named = [...new Set(config.WORKER_POOLS.split(","))];
  const unknown = named.find((pool) => !isPool(pool));
  if (unknown) throw new ConfigError(`WORKER_POOLS: there is no pool '${unknown}'; there are ${pools.join(", ")}.`);
  return named as Pool[];
}

const lastDecisionsMs = 10_000;

/** Connects, announces itself, takes jobs, and says how to stop. */
export async function startWorker(deps: {
  config: Config;
  env: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  log: Logger;
}): Promise<WorkerProcess> {
  const { config, env, clock, log } = deps;
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
  const cancellations = createCancellations({ subscriber, commands: redis, log });
  const running = createRunning({ cancellations, replies, clock, log });
  const upstreams = createUpstreams({ catalog, env, clock, log });
  const files = createFiles({ config, mongo, money, clock, log });
  const idempotency = createIdempotencyStore({ mongo, money, files, clock });
  await Promise.all([files.prepare(), idempotency.prepare()]);
  const counting = createCounting({ clock, log });
  const ending = new AbortController();
  const background = createBackground({ log });
  const handlerDeps: HandlerDeps = {
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
    // A worker does not wait for storage that is away. It never rejects.
    void files.prepareBucket();
  }
  const concurrency = concurrencyOf(config);
  const started = served.map((pool) =>
    startPool(handlerDeps, { pool, concurrency: concurrency[pool], redis: queueRedis }),
  );
  const presence = announce({
    worker: newId("wrk"),
    redis,
    clock,
    log,
    record: () => ({
      pools: Object.fromEntries(started.map((each) => [each.pool, each.load()])),
      upstreams: upstreams.states(),
    }),
  });
  await presence.write();

  return {
    pools: served,
    shutdown: [
      { name: "leave the picture", run: () => presence.stop() },
      {
        name: "stop taking",
        run: () => {
          // A buyback goes on in another process, from where it is.
          ending.abort(new Error("this process ends"));
          return Promise.all(started.map((pool) => pool.pause()));
        },
      },
      { name: "drain, then abort", run: () => running.drain(config.SHUTDOWN_GRACE_MS) },
      // With MongoDB away a decision may never come: then the job is left to the worker that gets it next.
      { name: "finish", run: () => atMost(clock, lastDecisionsMs, Promise.all(started.map((pool) => pool.close()))) },
      {
        name: "settle",
        run: () => atMost(clock, lastDecisionsMs, Promise.all([background.settled(), money.settled()])),
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
