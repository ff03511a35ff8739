import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import { loadCatalog } from "#catalog";
import { createQueues, createWorkerRegistry, pools, registerWorker, type WorkerRecord } from "#jobs";
import { systemClock } from "#platform/clock";
import { newId } from "#platform/ids";
import { createLogger } from "#platform/logger";
import { connectRedis, type RedisConfig, startRedis } from "#platform/redis";
import { startEmbedded } from "../../infra/embedded/index.ts";
import { median, table } from "./table.ts";

/**
 * node test/bench/registry.ts
 *
 * Measures the worker registry with many workers and API instances: records as workers write them, in a real Redis, and the API's
 * own reader, a few of which run here. Redis's time for all instances is that of one read, times their number.
 */
const fleets = [
  { workers: 50, apis: 20 },
  { workers: 500, apis: 200 },
];
const reads = 5;
const models = 30;
const waiting = [0, 5_000];

const dataDir = join(import.meta.dirname, `../../.data/bench-registry-${process.pid}`);
const log = createLogger("bench", "warn");
const catalog = loadCatalog(undefined);
const embedded = await startEmbedded({
  env: { ...process.env, REDIS_URL: "", MONGODB_URI: "mongodb://unused", S3_ENDPOINT: "http://unused" },
  dataDir,
  onProgress: () => {},
});

const upstreams = Object.fromEntries([...catalog.upstreams.keys()].map((id) => [id, "ready" as const]));
const speeds = { openai: {} as Record<string, object> };
for (let i = 0; i < models; i++)
  speeds.openai[`model-${i}`] = { calls: 120 + i, streamMs: 312.5, answerMs: 2_034.25, tokensPerSecond: 61.75 };
const record = (): WorkerRecord =>
  ({
    pools: Object.fromEntries(pools.map((pool) => [pool, { free: 250, running: 250 }])),
    upstreams,
    catalog: catalog.hash,
    speeds,
  }) as WorkerRecord;

const redisConfig = { REDIS_URL: embedded.env["REDIS_URL"] } as RedisConfig;
const redis = new Redis(embedded.env["REDIS_URL"] ?? "");
const usage = async () => {
  const info = await redis.info();
  const value = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, "m").exec(info)?.[1]);
  return {
    bytes: value("total_net_input_bytes") + value("total_net_output_bytes"),
    ms: 1_000 * (value("used_cpu_user") + value("used_cpu_sys")),
  };
};
/** The cost of one run of the work: the median time of this process, and Redis's mean. */
async function cost(work: () => Promise<unknown>) {
  const own: number[] = [];
  await work();
  const before = await usage();
  for (let i = 0; i < reads; i++) {
    const start = process.cpuUsage();
    await work();
    const { user, system } = process.cpuUsage(start);
    own.push((user + system) / 1_000);
  }
  const after = await usage();
  return { ownMs: median(own), redisMs: (after.ms - before.ms) / reads, bytes: (after.bytes - before.bytes) / reads };
}

/** Intervals never fire: the benchmark triggers writes and reads itself. */
const atRest = { ...systemClock, every: () => () => {} };

const rows: string[][] = [];
for (const { workers, apis } of fleets) {
  await redis.flushdb();
  const commands = connectRedis(redisConfig, "waiting", log);
  await startRedis(commands);
  const registrations = Array.from({ length: workers }, () =>
    registerWorker({ worker: newId("wrk"), redis: commands, clock: atRest, log, record }),
  );
  const writes = await cost(() => Promise.all(registrations.map((each) => each.write())));
  const reader = connectRedis(redisConfig, "fail-fast", log);
  await startRedis(reader);
  const queues = createQueues({ redis: reader, log });
  let tick = () => {};
  const clock = { ...systemClock, every: (_ms: number, run: () => void) => ((tick = run), () => {}) };
  for (const jobs of waiting) {
    const ids = Array.from({ length: jobs }, (_, i) => ["1", `api_0123456789ab-${i}-1`]).flat();
    if (ids.length > 0) await redis.zadd("{chat}:chat:prioritized", ...ids);
    let done = () => {};
    const observed = {
      announceShards: async () => {},
      detachedBacklog: (pool: Parameters<typeof queues.backlog>[0]) => queues.detachedBacklog(pool),
      backlog: async (pool: Parameters<typeof queues.backlog>[0]) =>
        queues.backlog(pool).finally(() => pool === "maintenance" && done()),
    };
    const registry = createWorkerRegistry({ redis: reader, queues: observed, catalog: catalog.hash, clock, log });
    await registry.start();
    const read = await cost(async () => {
      await Promise.all(registrations.map((each) => each.write()));
      const start = new Promise<void>((resolve) => {
        done = resolve;
      });
      tick();
      await start;
    });
    rows.push([
      `${workers} workers, ${apis} instances, ${jobs} calls wait`,
      (read.ownMs - writes.ownMs).toFixed(1),
      ((read.bytes - writes.bytes) / 1024).toFixed(0),
      (read.redisMs - writes.redisMs).toFixed(1),
      ((writes.bytes + (read.bytes - writes.bytes) * apis) / 1024 ** 2).toFixed(1),
      ((writes.redisMs + (read.redisMs - writes.redisMs) * apis) / 10).toFixed(0),
    ]);
  }
  for (const each of registrations) await each.stop();
  await queues.close();
  commands.disconnect();
  reader.disconnect();
}
process.stdout.write(
  `${table(["each second", "one instance: ms of processor time", "KB read", "Redis ms", "all: Redis MB/s", "Redis, % of a core"], rows)}\n`,
);
redis.disconnect();
await embedded.stop();
await rm(dataDir, { recursive: true, force: true });
