import { join } from "node:path";
import { Redis } from "ioredis";
import { until } from "./program.ts";
import { startRedis } from "./redis.ts";
import { freePort, type Server, type ServerOptions } from "./server.ts";

const slots = 16_384;
const formedWithinMs = 30_000;

export interface RedisCluster {
  /** The primaries, followed by their replicas, if any, in the same order. */
  readonly servers: readonly Server[];
  readonly env: Readonly<Record<"REDIS_CLUSTER_NODES", string>>;
}

/** Starts three primaries that share the hash slots, each with a replica if requested. */
export async function startRedisCluster(
  options: ServerOptions & { readonly replicas?: boolean },
): Promise<RedisCluster> {
  const { binary, dataDir, args = [], replicas = false } = options;
  const names = Array.from({ length: replicas ? 6 : 3 }, (_, n) => String(n));
  // The default port of the cluster bus lies in the range of ephemeral ports, where another process may have taken it.
  const busPorts = await Promise.all(names.map(() => freePort()));
  const cluster = ["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "2000"];
  const starting = names.map((name, n) => {
    const bus = ["--cluster-port", String(busPorts[n])];
    return startRedis({ binary, dataDir: join(dataDir, name), args: [...cluster, ...bus, ...args] });
  });
  const started = await Promise.allSettled(starting);
  const servers = started.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  try {
    for (const each of started) if (each.status === "rejected") throw each.reason;
    await form(servers, busPorts);
  } catch (error) {
    await Promise.all(servers.map((server) => server.stop()));
    throw error;
  }
  return { servers, env: { REDIS_CLUSTER_NODES: servers.map(({ port }) => `127.0.0.1:${port}`).join(",") } };
}

async function form(servers: readonly Server[], busPorts: readonly number[]): Promise<void> {
  const nodes = servers.map(({ port }) => new Redis(port, "127.0.0.1"));
  const [first] = nodes as [Redis];
  const ids = () => Promise.all(nodes.map((node) => node.call("CLUSTER", "MYID") as Promise<string>));
  const isKnown = async () => {
    const infos = await Promise.all(nodes.map((node) => node.call("CLUSTER", "INFO") as Promise<string>));
    const isFormed = (info: string) =>
      info.includes("cluster_state:ok") && info.includes(`cluster_known_nodes:${nodes.length}`);
    if (!infos.every(isFormed)) throw new Error(infos.join("\n"));
  };
  const deadline = AbortSignal.timeout(formedWithinMs);
  try {
    const primaries = nodes.slice(0, 3);
    for (const [n, node] of primaries.entries()) {
      const [from, to] = [n, n + 1].map((part) => Math.ceil((slots * part) / primaries.length)) as [number, number];
      await node.call("CLUSTER", "ADDSLOTSRANGE", from, to - 1);
    }
    for (const [n, node] of nodes.entries()) await node.call("CLUSTER", "SET-CONFIG-EPOCH", n + 1);
    for (const [n, { port }] of servers.entries())
      if (n > 0) await first.call("CLUSTER", "MEET", "127.0.0.1", port, busPorts[n] as number);
    await until(isKnown, deadline);
    const primaryIds = await ids();
    for (const [n, node] of nodes.slice(3).entries())
      await until(() => node.call("CLUSTER", "REPLICATE", primaryIds[n] as string), deadline);
    const isLinked = async (node: Redis) => {
      if (!(await node.info("replication")).includes("master_link_status:up")) throw new Error("a replica has no link");
    };
    await until(() => Promise.all(nodes.slice(3).map(isLinked)), deadline);
  } finally {
    for (const node of nodes) node.disconnect();
  }
}
