import { createCancellations, createQueues, createReplies, isPool, type Pool, pools, registerWorker } from "#jobs";
import { createByteBudget } from "#platform/byte-budget";
import { atMost } from "#platform/clock";
import { type Config, ConfigError } from "#platform/config";
import { newId } from "#platform/ids";
import { connectRedis, startRedis } from "#platform/redis";
import { createServices, type ProcessDeps } from "../shared/process.ts";
import { createCounting } from "./counting/index.ts";
import { createExecutor } from "./executors/index.ts";
import { startPool } from "./pool.ts";
import { createRunning } from "./running.ts";
import { createUpstreams } from "./upstreams/index.ts";

function poolsOf(config: Config): Pool[] {
  const named = [...new Set(config.WORKER_POOLS.split(","))];
  const unknown = named.find((pool) => !isPool(pool));
  if (unknown) throw new ConfigError(`WORKER_POOLS: there is no pool '${unknown}'; there are ${pools.join(", ")}.`);
  return named as Pool[];
}

/** The shutdown waits so long for decisions: without MongoDB they may never come, and the next worker gets the jobs. */
const maxDecisionMs = 10_000;

/** Connects and starts to take jobs. Returns the steps of the shutdown: stop taking jobs -> finish or abort -> flush -> close. */
export async function startWorker(deps: ProcessDeps & { env: Readonly<Record<string, string | undefined>> }) {
  const { config, env, clock, log } = deps;
  const served = poolsOf(config);
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
  const upstreams = createUpstreams({ catalog: common.catalog, env, clock });
  const counting = createCounting({ clock, log });
  const ending = new AbortController();
  const handlerDeps = {
    ...common,
    upstreams,
    replies,
    cancellations,
    running,
    counting,
    queues,
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
  const started = served.map((pool) => {
    const concurrency = config[`WORKER_CONCURRENCY_${pool.toUpperCase() as Uppercase<Pool>}`];
    return startPool(handlerDeps, { pool, concurrency, redis: queueRedis });
  });
  const registration = registerWorker({
    worker: newId("wrk"),
    redis,
    clock,
    log,
    record: () => ({
      pools: Object.fromEntries(started.map((each) => [each.pool, each.load()])),
      upstreams: upstreams.states(),
      speeds: upstreams.speeds(),
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
      { name: "settle", run: () => atMost(clock, maxDecisionMs, settled()) },
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
