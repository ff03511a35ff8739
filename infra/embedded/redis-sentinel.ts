import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pingRedisServer } from "./redis.ts";
import { openFolder, type Server, type ServerOptions, startServer } from "./server.ts";

/** A sentinel of the primary at `port`. It writes what it learns into its configuration. */
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
