import { Redis } from "ioredis";
import type { Logger } from "./logger.ts";

/**
 * Three ways to hold a connection:
 * `impatient`: the API's commands. Nothing waits in line while Redis is away, and no command waits over half a second (a call asks twice).
 * `patient`: a worker's commands and BullMQ. They wait until Redis is back.
 * `blocking`: one command at a time that may block (XREAD), or a subscriber. Waits like `patient`.
 */
export type RedisManner = "impatient" | "patient" | "blocking";

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
  });
  // Without a listener ioredis prints to the console; the reconnecting itself is its own affair.
  redis.on("error", (error: Error) => log.warn({ err: error.message, manner }, "redis"));
  return redis;
}
