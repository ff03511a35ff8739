import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { openFolder, type Server, type ServerOptions, startServer } from "./server.ts";

/** Starts Redis or Valkey with an append-only file. The queues need `noeviction`. */
export const startRedis = (options: ServerOptions): Promise<Server> =>
  startRedisServer("Redis", "REDIS_URL", ["--appendonly", "yes", "--maxmemory-policy", "noeviction"], options);

const evicting = ["--maxmemory", "256mb", "--maxmemory-policy", "allkeys-lru"];

/** Starts the Redis of the response cache, which writes nothing to disk. */
export const startCacheRedis = (options: ServerOptions): Promise<Server> =>
  startRedisServer("Cache", "CACHE_REDIS_URL", ["--appendonly", "no", ...evicting], options);

async function startRedisServer(
  name: string,
  variable: string,
  storage: readonly string[],
  { binary, dataDir, args = [] }: ServerOptions,
): Promise<Server> {
  const folder = await openFolder(dataDir);
  const { data, port } = folder;
  const listen = ["--bind", "127.0.0.1", "--port", String(port), "--dir", data];
  return startServer(folder, {
    name,
    command: binary,
    args: [...listen, "--save", "", ...storage, ...args],
    env: { [variable]: `redis://127.0.0.1:${port}` },
    isReady: () => pingRedisServer(port),
  });
}

/**
 * Starts a sentinel that monitors the primary at `port`. It writes the discovered state into its configuration file.
 */
export async function startSentinel(
  options: ServerOptions & { readonly primaryPort: number; readonly quorum: number },
): Promise<Server> {
  const folder = await openFolder(options.dataDir);
  const file = join(folder.data, "sentinel.conf");
  writeFileSync(
    file,
    [
      `port ${folder.port}`,
      "bind 127.0.0.1",
      `dir ${folder.data}`,
      `sentinel monitor mymaster 127.0.0.1 ${options.primaryPort} ${options.quorum}`,
      "sentinel down-after-milliseconds mymaster 1000",
      "sentinel failover-timeout mymaster 6000",
    ].join("\n"),
  );
  return startServer(folder, {
    name: "Sentinel",
    command: options.binary,
    args: [file, "--sentinel"],
    env: { REDIS_SENTINELS: `127.0.0.1:${folder.port}` },
    isReady: () => pingRedisServer(folder.port),
  });
}

/** Rejects while the server loads its data, because it responds with an error until then. */
const pingRedisServer = (port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write("PING\r\n"));
    socket.setTimeout(1_000, () => socket.destroy(new Error("no answer")));
    socket.once("error", reject);
    socket.once("data", (data) => {
      socket.destroy();
      if (data.toString() === "+PONG\r\n") resolve();
      else reject(new Error(data.toString()));
    });
  });
