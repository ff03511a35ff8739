import type { Redis } from "ioredis";

const tickMs = 200;
const silentTicks = 2;

/**
 * Ends a connection whose server hangs. It counts ticks, because a timeout would also end a healthy one after a pause
 * of this process: of the ticks that a pause delays, only one runs before the replies that have arrived are read.
 */
export function endWhenSilent(redis: Redis): void {
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
