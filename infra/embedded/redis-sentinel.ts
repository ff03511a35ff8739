import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pingRedisServer } from "./redis.ts";
import { openFolder, type Server, type ServerOptions, startServer } from "./server.ts";

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
