import type { Clock } from "./clock.ts";
import type { Logger } from "./logger.ts";
import type { Mongo } from "./mongo/connection.ts";
import type { RedisClient } from "./redis.ts";

/** The connections and facilities of a process. */
interface Platform {
  readonly clock: Clock;
  readonly log: Logger;
  readonly mongo: Mongo;
  readonly redis: RedisClient;
}

/** The parts of them that a function uses: `Uses<"clock" | "log">`. */
export type Uses<Part extends keyof Platform> = Pick<Platform, Part>;
