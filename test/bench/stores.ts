import { Redis } from "ioredis";
import mongoose from "mongoose";

/** The stores' counters so far. */
export interface Counters {
  /** Includes commands inside scripts. */
  readonly redisCommands: number;
  readonly redisScripts: number;
  /** Received and sent. */
  readonly redisBytes: number;
  readonly mongoRequests: number;
  readonly journalSyncs: number;
}

export interface Stores {
  readonly counters: () => Promise<Counters>;
  readonly redisMemoryBytes: () => Promise<number>;
  /** The number of open connections, including the benchmark's own. */
  readonly connections: () => Promise<{ readonly redis: number; readonly mongo: number }>;
  /** Inserts data for which the service's interface would be too slow. */
  readonly mongo: mongoose.mongo.Db;
  readonly close: () => Promise<void>;
}

interface ServerStatus {
  readonly network: { readonly numRequests: number | bigint };
  readonly wiredTiger: { readonly log: Readonly<Record<"log sync operations", number | bigint>> };
}

/** Opens the benchmark's own connections. Their commands are counted as well, but are only a few per round. */
export async function connectStores(env: Readonly<Record<string, string>>): Promise<Stores> {
  const redis = new Redis(env["REDIS_URL"] ?? "");
  const client = await new mongoose.mongo.MongoClient(env["MONGODB_URI"] ?? "", { useBigInt64: true }).connect();
  const mongo = client.db();

  const infoOf = async (section: string) => {
    const text = await redis.info(section);
    return new Map(text.split("\r\n").map((line) => line.split(":", 2) as [string, string]));
  };
  const numberOf = (info: ReadonlyMap<string, string>, name: string) => Number(info.get(name));
  const callsOf = (stats: string) => Number(/calls=(\d+)/.exec(stats)?.[1] ?? 0);

  return {
    mongo,
    async counters() {
      const [commands, stats, status] = await Promise.all([
        infoOf("commandstats"),
        infoOf("stats"),
        mongo.command({ serverStatus: 1 }) as Promise<unknown> as Promise<ServerStatus>,
      ]);
      const calls = [...commands].map(([name, text]) => ({ name, calls: callsOf(text ?? "") }));
      const isScript = /^cmdstat_(?:eval|fcall)/;
      return {
        redisCommands: calls.reduce((total, each) => total + each.calls, 0),
        redisScripts: calls.reduce((total, each) => total + (isScript.test(each.name) ? each.calls : 0), 0),
        redisBytes: numberOf(stats, "total_net_input_bytes") + numberOf(stats, "total_net_output_bytes"),
        mongoRequests: Number(status.network.numRequests),
        journalSyncs: Number(status.wiredTiger.log["log sync operations"]),
      };
    },
    async redisMemoryBytes() {
      return numberOf(await infoOf("memory"), "used_memory");
    },
    async connections() {
      const [clients, status] = await Promise.all([infoOf("clients"), mongo.command({ serverStatus: 1 })]);
      return { redis: numberOf(clients, "connected_clients"), mongo: Number(status["connections"].current) };
    },
    async close() {
      redis.disconnect();
      await client.close();
    },
  };
}
