import { homedir } from "node:os";
import { join } from "node:path";
import { type Binaries, findBinaries } from "./binaries.ts";
import type { Progress } from "./fetch.ts";
import { startMongo } from "./mongo.ts";
import { startRedis } from "./redis.ts";
import { startS3 } from "./s3.ts";
import type { Server } from "./server.ts";

/**
 * Real Redis, MongoDB and S3 on a machine that has neither them nor Docker.
 *
 * Each is found in this order: the address given (`REDIS_URL`, `MONGODB_URI`, `S3_ENDPOINT`), a program on PATH, a
 * program in the cache, fetched into the cache. A server's folder keeps its data, its port and its log. Nothing outlives
 * the process that started it, however that process ends. `findBinaries` throws MissingServerError.
 */
export { findBinaries, MissingServerError } from "./binaries.ts";
export type { Progress } from "./fetch.ts";
export { startMongo, startMongoSet } from "./mongo.ts";
export { createProgram, type Program, until } from "./program.ts";
export { startRedis } from "./redis.ts";
export { startS3 } from "./s3.ts";
export { freePort, isFree, type Server } from "./server.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** Where fetched programs stay. */
export const cacheDirOf = (env: Env): string =>
  join(env.XDG_CACHE_HOME || join(env.HOME || homedir(), ".cache"), "inference-service");

export interface EmbeddedOptions {
  readonly env: Env;
  readonly dataDir: string;
  readonly cacheDir?: string;
  readonly onProgress?: (progress: Progress) => void;
  readonly signal?: AbortSignal;
  readonly redisArgs?: readonly string[];
  readonly mongoArgs?: readonly string[];
}

export interface Embedded {
  /** The addresses of what was started. What was given is not in it. */
  readonly env: Readonly<Record<string, string>>;
  readonly servers: readonly Server[];
  /** In order: S3, Redis, MongoDB. */
  readonly stop: () => Promise<void>;
}

/** Starts each server whose address is not given, side by side, with their data under `dataDir`. */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const binaries = await findBinaries({ cacheDir: cacheDirOf(options.env), ...options });
  const started = await Promise.allSettled(starts(binaries, options));
  const servers = started.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const stop = async () => {
    for (const server of servers) await server.stop();
  };
  const failed = started.find((each) => each.status === "rejected");
  if (failed) {
    await stop();
    throw failed.reason;
  }
  return { env: Object.assign({}, ...servers.map((server) => server.env)), servers, stop };
}

function* starts(binaries: Binaries, options: EmbeddedOptions): Generator<Promise<Server>> {
  const folder = (name: string) => join(options.dataDir, name);
  const { redisArgs = [], mongoArgs = [] } = options;
  if (binaries.s3) yield startS3({ binary: binaries.s3, dataDir: folder("s3") });
  if (binaries.redis) yield startRedis({ binary: binaries.redis, dataDir: folder("redis"), args: redisArgs });
  if (binaries.mongo) yield startMongo({ binary: binaries.mongo, dataDir: folder("mongo"), args: mongoArgs });
}
