import { Redis } from "ioredis";
import type { Logger } from "./logger.ts";

/**
 * `fail-fast`: commands of the API. They fail at once while Redis is unavailable, and after about half a second without a
 * reply.
 * `waiting`: commands of workers, and BullMQ. They wait until Redis is back.
 * `blocking`: one blocking command at a time (XREAD), or a subscriber. Waits like `waiting`.
 */
export type RedisMode = "fail-fast" | "waiting" | "blocking";

/**
 * Errors of a server that is no longer the primary, also from within a script. It does not close connections, so only a new
 * connection reaches the server that took over.
 */
const demoted = /^(READONLY|UNBLOCKED|MASTERDOWN|LOADING) /;
const reconnect = true;
const reconnectAndResend = 2;

/**
 * Connects at once, in the background. Not `lazyConnect`: BullMQ copies the options for its blocking connections, and one
 * whose first, lazy `connect()` fails would never take a job though ioredis connects it later.
 */
export function connectRedis(url: string, mode: RedisMode, log: Logger): Redis {
  const redis = new Redis(url, {
    enableOfflineQueue: mode !== "fail-fast",
    enableAutoPipelining: mode === "waiting",
    // Frames are in batches already: a pipeline would only delay them.
    autoPipeliningIgnoredCommands: ["XADD"],
    maxRetriesPerRequest: mode === "fail-fast" ? 0 : null,
    // Detects a server that hangs. Longer than a blocking read, which lasts 5 s.
    ...(mode === "fail-fast" ? { connectTimeout: 1_000 } : { socketTimeout: 20_000 }),
    keepAlive: 10_000,
    retryStrategy: (times) => Math.min(50 * times, 500),
    // A refused command changed nothing, so it may be resent. BullMQ duplicates this connection with its options.
    reconnectOnError: ({ message }) => demoted.test(message) && (mode === "fail-fast" ? reconnect : reconnectAndResend),
  });
  // Each of several commands that are refused together adds listeners when it ends the connection.
  redis.on("connect", () => redis.stream.setMaxListeners(0));
  if (mode === "fail-fast") redis.on("connect", () => endWhenSilent(redis));
  // Without a listener ioredis prints to the console. It reconnects by itself.
  redis.on("error", (error: Error) => log.warn({ err: error.message, mode }, "redis"));
  return redis;
}

const tickMs = 200;
const silentTicks = 2;

/**
 * Ends a connection whose server hangs. It counts ticks, because a timeout would also end a sound one after a pause of this
 * process: of the ticks that a pause delays only one runs before the replies that came meanwhile are read.
 */
function endWhenSilent(redis: Redis): void {
  const { stream } = redis;
  let ticks = 0;
  stream.on("data", () => {
    ticks = 0;
  });
  const timer = setInterval(() => {
    if (ticks++ === silentTicks) stream.destroy(new Error("Redis does not reply."));
    else if (redis.status === "ready") redis.ping().catch(() => {});
  }, tickMs);
  stream.once("close", () => clearInterval(timer));
}

/** Rejects while there is no connection, where a command of a worker would wait for one. */
export const pingRedis = async (redis: Redis): Promise<void> => {
  if (redis.status !== "ready") throw new Error(`The connection to Redis is ${redis.status}.`);
  await redis.ping();
};

const startTimeoutMs = 10_000;

/** Waits for the first connection, ten seconds at most: startup is not latency-critical. ioredis retries by itself. */
export async function startRedis(redis: Redis): Promise<void> {
  if (redis.status === "ready") return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let failure = new Error("Redis does not reply.");
  const onError = (error: Error) => {
    failure = error;
  };
  const timer = setTimeout(() => {
    redis.disconnect();
    reject(failure);
  }, startTimeoutMs);
  redis.on("error", onError).once("ready", resolve);
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    redis.off("error", onError).off("ready", resolve);
  }
}

/**
 * A connection that only reads gets no error when its server is demoted. So it reconnects whenever a writing connection has
 * reconnected. Returns a function that stops this.
 */
export function reconnectTogether(writing: Redis, reading: Redis): () => void {
  const reconnect = () => {
    if (reading.status === "ready") reading.disconnect(true);
  };
  writing.on("ready", reconnect);
  return () => writing.off("ready", reconnect);
}
