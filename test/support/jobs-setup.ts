import { Queue } from "bullmq";
import { Cluster, type Redis } from "ioredis";
import { expect, onTestFinished } from "vitest";
import { createReplies, createReplyReader, type Frame, type PaidCall, type Pool, prefixOf } from "#jobs";
import { type Clock, systemClock } from "#platform/clock";
import { loadConfig } from "#platform/config";
import { createLogger } from "#platform/logger";
import { connectRedis, type RedisClient, type RedisMode, startRedis } from "#platform/redis";
import { type Stores, testStores } from "./servers.ts";

export const log = createLogger("test", "silent");
/** The default of `API_TIMEOUT_MS`. */
export const defaultApiTimeoutMs = 30_000;

/** A connection that ends with the test. */
export async function connect(stores: Stores, manner: RedisMode): Promise<Redis> {
  // The commands are the same on a cluster.
  const redis = connectRedis(loadConfig({ ...stores }), manner, log) as Redis;
  onTestFinished(() => redis.disconnect());
  await startRedis(redis);
  return redis;
}

/** BullMQ's own view of a pool's queue. */
export const queueOn = (connection: Redis, pool: Pool): Queue =>
  new Queue(pool, { connection, prefix: prefixOf(pool), skipVersionCheck: true });

/** The same, on a connection of its own. It ends with the test. */
export async function openQueue(stores: Stores, pool: Pool): Promise<Queue> {
  const queue = queueOn(await connect(stores, "waiting"), pool);
  onTestFinished(() => queue.close());
  return queue;
}

const serversOf = (redis: RedisClient): readonly Redis[] =>
  redis instanceof Cluster ? redis.nodes("master") : [redis as Redis];

/** The names of all matching keys, on a cluster as well. */
export const keysOf = async (redis: RedisClient, pattern: string): Promise<string[]> =>
  (await Promise.all(serversOf(redis).map((server) => server.keys(pattern)))).flat();

/** Redis loses the data of a test, on a cluster all nodes do. */
export const loseData = (redis: RedisClient): Promise<unknown> =>
  Promise.all(serversOf(redis).map((server) => server.flushdb()));

/** Expects a key to expire `ms` after a write that began at `begunAt`, in milliseconds of `performance.now()`. */
export async function expectExpiry(redis: Redis, key: string, ms: number, begunAt: number): Promise<void> {
  const remainingMs = await redis.pttl(key);
  expect(remainingMs).toBeLessThanOrEqual(ms);
  expect(remainingMs).toBeGreaterThanOrEqual(ms - (performance.now() - begunAt) - 10);
}

/** The API's end, on separate connections. */
export async function openReader(stores: Stores, clock: Clock = systemClock, instance = "api_test") {
  const [blocking, commands] = await Promise.all([connect(stores, "blocking"), connect(stores, "fail-fast")]);
  const reader = createReplyReader({
    instance,
    apiTimeoutMs: defaultApiTimeoutMs,
    reader: blocking,
    commands,
    clock,
    log,
  });
  onTestFinished(() => reader.stop());
  return { reader, commands };
}

/** The worker's end. */
export async function openWriter(stores: Stores, clock: Clock = systemClock) {
  const redis = await connect(stores, "waiting");
  return { redis, replies: createReplies({ redis, apiTimeoutMs: defaultApiTimeoutMs, clock }) };
}

/** The stream of the reader's instance. */
export const replyKey = "reply:api_test";

/** A reader that has started, and a writer, on the same stores. */
export async function bothEnds(clocks: { reader?: Clock; writer?: Clock } = {}) {
  const stores = await testStores();
  const [{ reader, commands }, { replies, redis }] = await Promise.all([
    openReader(stores, clocks.reader),
    openWriter(stores, clocks.writer),
  ]);
  await reader.start();
  return { stores, reader, commands, replies, redis };
}

/** Collects a request's frames as an API instance does: it checks their order, and drops repeated ones. */
export function collect(reader: Awaited<ReturnType<typeof openReader>>["reader"], requestId: string) {
  const frames: Frame[] = [];
  const twice: Frame[] = [];
  const ended = new Promise<Frame>((resolve, reject) => {
    reader.expect(requestId, (frame) => {
      if (frame.seq >= 0 && frame.seq < frames.length) return void twice.push(frame);
      if (frame.seq > frames.length) return reject(new Error(`${frame.seq} came after ${frames.length - 1}`));
      frames.push(frame);
      if (frame.kind !== "chunk") resolve(frame);
    });
  });
  return { frames, twice, ended, text: () => frames.map(({ data }) => data).join("") };
}

export const paidCall = (requestId: string, fields: Partial<PaidCall> = {}): PaidCall => ({
  v: 1,
  requestId,
  account: "acct_1",
  keyId: "key_1",
  tier: "standard",
  endpoint: "/v1/chat/completions",
  model: "local/chat",
  stream: false,
  held: "1000",
  outputCap: 10,
  inputEstimate: 5,
  replyTo: "api_test",
  acceptedAt: Date.now(),
  deadlineAt: Date.now() + 60_000,
  body: { json: "{}" },
  ...fields,
});
