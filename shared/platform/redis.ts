import { Redis } from "ioredis";
import type { Logger } from "./logger.ts";

/**
 * Three ways to hold a connection:
 * `impatient`: the API's commands. Nothing waits in line while Redis is away, and no command waits over half a second (a call asks twice).
 * `patient`: a worker's commands and BullMQ. They wait until Redis is back.
 * `blocking`: one command at a time that may block (XREAD), or a subscriber. Waits like `patient`.
 */
export type RedisManner = "impatient" | "patient" | "blocking";

/**
 * What a server says that is no longer the primary, in the middle of a script too: it lets connections be, reads go on,
 * and blocked ones end. A new connection leads to the server that took over.
 */
const demoted = /^(READONLY|UNBLOCKED|MASTERDOWN|LOADING) /;
const reconnect = true;
const reconnectAndResend = 2;

export function connectRedis(url: string, manner: RedisManner, log: Logger): Redis {
  const redis = new Redis(url, {
    lazyConnect: true,
    enableOfflineQueue: manner !== "impatient",
    enableAutoPipelining: manner === "patient",
    maxRetriesPerRequest: manner === "impatient" ? 0 : null,
    // A server that hangs, or is gone without a word, is noticed by its silence. Blocking reads last 5 s.
    socketTimeout: manner === "impatient" ? 500 : 20_000,
    ...(manner === "impatient" && { connectTimeout: 1_000 }),
    keepAlive: 10_000,
    retryStrategy: (times) => Math.min(50 * times, 500),
    // What was refused has changed nothing. BullMQ's own connections are copies of this one.
    reconnectOnError: ({ message }) =>
      demoted.test(message) && (manner === "impatient" ? reconnect : reconnectAndResend),
  });
  // Every command that is refused together with others ends the connection once more.
  redis.on("connect", () => redis.stream.setMaxListeners(0));
  // Without a listener ioredis prints to the console; the reconnecting itself is its own affair.
  redis.on("error", (error: Error) => log.warn({ err: error.message, manner }, "redis"));
  return redis;
}

const startMs = 10_000;

/** Makes the first connection. It is retried for ten seconds: startup is not latency-critical. */
export async function startRedis(redis: Redis): Promise<void> {
  try {
    await redis.connect();
  } catch (error) {
    if (redis.status === "ready") return;
    // ioredis goes on trying by itself.
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        redis.disconnect();
        reject(error);
      }, startMs);
      redis.once("ready", () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}

/**
 * Connections that only read are not told that their server has been demoted: they follow one that writes whenever it
 * comes back from a lost or refused connection. Returns how to stop that.
 */
export function follow(writing: Redis, reading: Redis): () => void {
  const reconnect = () => {
    if (reading.status === "ready") reading.disconnect(true);
  };
  writing.on("ready", reconnect);
  return () => writing.off("ready", reconnect);
}
