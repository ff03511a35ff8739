import { homedir } from "node:os";
import { join } from "node:path";
import { findBinaries } from "./binaries.ts";
import type { FetchOptions } from "./fetch.ts";
import { startMongo } from "./mongo.ts";
import { startCacheRedis, startRedis } from "./redis.ts";
import { startS3 } from "./s3.ts";
import type { Server } from "./server.ts";

/**
 * Real Redis, MongoDB and S3 servers as child processes, without Docker.
 *
 * Each server is looked up in this order: a configured address (`REDIS_URL` or its alternatives, `MONGODB_URI`,
 * `S3_ENDPOINT`); a program on PATH; a program in the cache; a program fetched into the cache. A server's folder holds
 * its data, port and log. The response cache's Redis is started beside the queues' Redis, unless `CACHE_REDIS_URL` is
 * set. No server outlives the process that started it, even if that process is killed. `findBinaries` throws MissingServerError.
 */
export { findBinaries, MissingServerError } from "./binaries.ts";
export type { Progress } from "./fetch.ts";
export { startMongo } from "./mongo.ts";
export { createProgram, expectOk, nodeArgs, type Program, spawnGuarded, until } from "./program.ts";
export { startCacheRedis, startRedis, startSentinel } from "./redis.ts";
export { type RedisCluster, startRedisCluster } from "./redis-cluster.ts";
export { startS3 } from "./s3.ts";
export { freePort, isFree, type Server } from "./server.ts";

type Env = Readonly<Record<string, string | undefined>>;

export const cacheDirOf = (env: Env): string =>
  join(env.XDG_CACHE_HOME || join(env.HOME || homedir(), ".cache"), "inference-service");

interface EmbeddedOptions extends Omit<FetchOptions, "cacheDir"> {
  readonly dataDir: string;
  /** For both Redis servers. */
  readonly redisArgs?: readonly string[];
  readonly mongoArgs?: readonly string[];
}

/**
 * Starts each server whose address is not set, with its data under `dataDir`. Returns in `env` the variables through
 * which the service reaches the servers.
 */
export async function startEmbedded(options: EmbeddedOptions) {
  const binaries = await findBinaries({ cacheDir: cacheDirOf(options.env), ...options });
  const { dataDir, redisArgs = [], mongoArgs = [] } = options;
  const started = await Promise.allSettled([
    binaries.s3 && startS3({ binary: binaries.s3, dataDir: join(dataDir, "s3") }),
    binaries.redis && startRedis({ binary: binaries.redis, dataDir: join(dataDir, "redis"), args: redisArgs }),
    binaries.redis &&
      !options.env.CACHE_REDIS_URL &&
      startCacheRedis({ binary: binaries.redis, dataDir: join(dataDir, "cache"), args: redisArgs }),
    binaries.mongo && startMongo({ binary: binaries.mongo, dataDir: join(dataDir, "mongo"), args: mongoArgs }),
  ]);
  const servers = started.flatMap((each) => (each.status === "fulfilled" && each.value ? [each.value] : []));
  const stop = async () => {
    for (const server of servers) await server.stop();
  };
  const failed = started.find((each) => each.status === "rejected");
  if (failed) {
    await stop();
    throw failed.reason;
  }
  const env: Server["env"] = Object.assign({}, ...servers.map((server) => server.env));
  return { env, servers, stop };
}
