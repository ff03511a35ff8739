import { mkdtempSync } from "node:fs";
import { mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { Redis } from "ioredis";
import { inject, onTestFinished } from "vitest";
import type { TestProject } from "vitest/node";
import {
  cacheDirOf,
  findBinaries,
  type Progress,
  type RedisCluster,
  type Server,
  startCacheRedis,
  startEmbedded,
  startMongo,
  startRedis,
  startRedisCluster,
  startS3,
  startSentinel,
} from "../../infra/embedded/index.ts";
import { newDatabase, pooledDatabase } from "./databases.ts";
import { initiateMongoSet } from "./failover.ts";

/** The variables with which `loadConfig` reaches the stores. */
export interface Stores {
  readonly REDIS_URL: string;
  /**
   * Replaces REDIS_URL, which is then empty: TEST_REDIS=cluster uses it for all tests except those that need one
   * server.
   */
  readonly REDIS_CLUSTER_NODES?: string;
  readonly REDIS_SENTINELS?: string;
  readonly REDIS_DATABASE?: string;
  /** A service whose `env` has it empty has no response cache. */
  readonly CACHE_REDIS_URL?: string;
  readonly MONGODB_URI: string;
  readonly S3_ENDPOINT: string;
  readonly S3_BUCKET: string;
  readonly S3_ACCESS_KEY_ID: string;
  readonly S3_SECRET_ACCESS_KEY: string;
  readonly S3_REGION: string;
}

declare module "vitest" {
  interface ProvidedContext {
    /** The file with the result of the servers' start, once there is one. */
    startOfServers: string;
  }
}

const databases = 1024;
// The append-only file preserves Redis data over a restart, without waiting for the disk. Valkey 9 and newer give each
// test a separate database, in a cluster as well.
const clusterArgs = ["--cluster-databases", String(databases), "--appendfsync", "no"];
const redisArgs = ["--databases", String(databases), "--appendfsync", "no"];
// A database has some sixty files: MongoDB closes those that no test uses.
const openFiles = "file_manager=(close_idle_time=20,close_scan_interval=5,close_handle_minimum=100)";
const mongoArgs = ["--setParameter", "enableTestCommands=1", "--wiredTigerEngineConfigString", openFiles];

/**
 * Starts the servers once per run, however many projects name this file, and does not wait for them: the unit tests run
 * meanwhile, and a first run may have to compile one. The other tests wait in `await-servers.ts`.
 */
export default function setup(project: TestProject): () => Promise<void> {
  const run = (shared[runKey] ??= startForRun(() => void project.vitest.cancelCurrentRun("test-failure")));
  run.users += 1;
  project.provide("startOfServers", run.file);
  return async () => {
    run.users -= 1;
    if (run.users > 0) return;
    delete shared[runKey];
    await run.stop();
  };
}

interface Run {
  users: number;
  readonly file: string;
  readonly stop: () => Promise<void>;
}
// Each project may load this file again.
const runKey = Symbol.for("inference-service.test-servers");
const shared = globalThis as { [runKey]?: Run };

type Start = { readonly stores: Stores } | { readonly error: string };

function startForRun(onFailure: () => void): Run {
  const dataDir = mkdtempSync(join(tmpdir(), "inference-test-"));
  const file = join(dataDir, "start.json");
  const started = startServers(dataDir);
  const write = async (start: Start) => {
    await writeFile(`${file}.part`, JSON.stringify(start));
    await rename(`${file}.part`, file);
  };
  const written = started.then(
    ({ stores }) => write({ stores }),
    async (error: Error) => {
      process.exitCode = 1;
      process.stderr.write(`${error.message}\n`);
      await write({ error: error.message });
      onFailure();
    },
  );
  return {
    users: 0,
    file,
    async stop() {
      await written;
      // Only a start that failed has nothing to stop: startEmbedded has then stopped what had started.
      await started.then(
        ({ stop }) => stop(),
        () => undefined,
      );
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

async function startServers(dataDir: string) {
  const { env } = process;
  const cluster = env["TEST_REDIS"] === "cluster" ? await clusterForRun(join(dataDir, "cluster")) : undefined;
  const embedded = await startEmbedded({ env, dataDir, onProgress: report, redisArgs, mongoArgs });
  const addresses = { ...env, ...embedded.env, ...cluster?.env };
  const stores = { S3_BUCKET: "inference", S3_REGION: "us-east-1", ...addresses } as unknown as Stores;
  return {
    stores,
    stop: async () => {
      await Promise.all(cluster?.servers.map((server) => server.stop()) ?? []);
      await embedded.stop();
    },
  };
}

// A worker of Vitest keeps these for all of its files.
const storesKey = Symbol.for("inference-service.test-stores");
const connectionsKey = Symbol.for("inference-service.test-redis");
const worker = globalThis as { [storesKey]?: Promise<Stores>; [connectionsKey]?: Map<string, Redis> };

/** The addresses of the run's servers, once they have started. */
export async function storesOfRun(): Promise<Stores> {
  worker[storesKey] ??= readStart(inject("startOfServers"));
  return worker[storesKey];
}

async function readStart(file: string): Promise<Stores> {
  for (;;) {
    const text = await readFile(file, "utf8").catch(() => undefined);
    if (text === undefined) {
      await setTimeout(100);
      continue;
    }
    const start = JSON.parse(text) as Start;
    if ("error" in start) throw new Error(start.error);
    return start.stores;
  }
}

async function clusterForRun(dataDir: string) {
  const { redis: binary } = await ownBinaries(["redis"]);
  const { env, servers } = await startRedisCluster({ binary: binary as string, dataDir, args: clusterArgs });
  return { servers, env };
}

const report = ({ what, step, elapsedMs, state }: Progress): void => {
  const seconds = Math.round(elapsedMs / 1000);
  if (state !== "running" || seconds % 10 === 0) process.stderr.write(`${what}: ${state}, ${step} ${seconds} s\n`);
};

export interface StoreOptions {
  /** Also where the run has a cluster. */
  readonly oneServer?: boolean;
  /** Default: migrated. `new` has no collections. */
  readonly database?: "migrated" | "new";
}

/**
 * The run's servers, with a logical database of each Redis and a MongoDB database that are empty and belong to the
 * running test, or to its file if no test is running. The bucket is shared, so objects need unique keys.
 */
export async function testStores({ oneServer = false, database = "migrated" }: StoreOptions = {}): Promise<Stores> {
  const stores = await storesOfRun();
  const open = database === "new" ? newDatabase : pooledDatabase;
  const [redis, CACHE_REDIS_URL = "", MONGODB_URI] = await Promise.all([
    onRedis(stores, oneServer),
    stores.CACHE_REDIS_URL && inEmptyDatabase(stores.CACHE_REDIS_URL),
    open(stores.MONGODB_URI),
  ]);
  return { ...stores, ...redis, CACHE_REDIS_URL, MONGODB_URI };
}

async function onRedis({ REDIS_URL, REDIS_CLUSTER_NODES }: Stores, oneServer: boolean) {
  if (REDIS_CLUSTER_NODES && !oneServer) {
    const ports = REDIS_CLUSTER_NODES.split(",").map((node) => Number(node.split(":")[1]));
    const database = await emptyDatabase(ports.map((port) => `redis://127.0.0.1:${port}`));
    return { REDIS_URL: "", REDIS_CLUSTER_NODES, REDIS_DATABASE: String(database) };
  }
  return { REDIS_URL: await inEmptyDatabase(REDIS_URL), REDIS_CLUSTER_NODES: "" };
}

async function inEmptyDatabase(server: string): Promise<string> {
  const url = new URL(server);
  url.pathname = `/${await emptyDatabase([server])}`;
  return url.href;
}

/** Connections on which tests find empty databases; they last as long as the worker of Vitest. */
function connectionTo(server: string, use: "count" | "probe"): Redis {
  const connections = (worker[connectionsKey] ??= new Map<string, Redis>());
  const key = `${use} ${server}`;
  const connection = connections.get(key) ?? new Redis(server, { db: 0 });
  connections.set(key, connection);
  return connection;
}

/** Finds a database that is empty on all servers. The first server with the counter's hash slot has the counter. */
async function emptyDatabase(servers: readonly string[]): Promise<number> {
  const count = async ([server, ...others]: readonly string[]): Promise<number> => {
    try {
      return await connectionTo(server as string, "count").incr("test:databases");
    } catch (error) {
      if (!(error as Error).message.startsWith("MOVED")) throw error;
      return count(others);
    }
  };
  const isEmpty = async (server: string, database: number) => {
    const results = await connectionTo(server, "probe").multi().select(database).dbsize().exec();
    return results?.[1]?.[1] === 0;
  };
  for (let tries = 1; tries < databases; tries++) {
    const number = 1 + ((await count(servers)) % (databases - 1));
    if ((await Promise.all(servers.map((server) => isEmpty(server, number)))).every(Boolean)) return number;
  }
  throw new Error("Redis has no empty logical database. Start it with --databases 1024, or empty it.");
}

/** Stores with a Redis other than the run's. */
export const withRedis = (stores: Stores, address: Partial<Stores>): Stores => ({
  ...stores,
  REDIS_URL: "",
  REDIS_CLUSTER_NODES: "",
  REDIS_DATABASE: "",
  ...address,
});

export interface OwnServers {
  readonly redis: Server;
  readonly cache: Server;
  readonly mongo: Server;
  readonly s3: Server;
}

/** A folder that is removed after the running test, when the servers in it have ended. */
async function ownFolder(): Promise<{ readonly dataDir: string; readonly started: Server[] }> {
  const dataDir = await mkdtemp(join(tmpdir(), "inference-own-"));
  const started: Server[] = [];
  onTestFinished(async () => {
    await Promise.all(started.map((server) => server.stop()));
    await rm(dataDir, { recursive: true, force: true });
  });
  return { dataDir, started };
}

const addresses = { redis: "REDIS_URL", mongo: "MONGODB_URI", s3: "S3_ENDPOINT" } as const;
type ProgramName = keyof typeof addresses;

/** Includes programs of servers whose address is configured: these tests start their own. */
function ownBinaries(names: readonly ProgramName[]) {
  const given = Object.entries(addresses).map(([name, address]) => [
    address,
    names.includes(name as ProgramName) ? "" : "not wanted",
  ]);
  const env = { ...process.env, ...(Object.fromEntries(given) as Record<string, string>) };
  return findBinaries({ env, cacheDir: cacheDirOf(env) });
}

/**
 * Servers for the running test alone, to stop (`stop`), kill (`kill`), pause (`kill("SIGSTOP")`, `kill("SIGCONT")`) and
 * `start` again on the same port with the same data. They end with the test, and their data is removed. `stores` has
 * the run's servers for the others.
 */
export async function ownServers<Name extends keyof OwnServers>(
  wanted: Readonly<Record<Name, true>>,
): Promise<Pick<OwnServers, Name> & { readonly stores: Stores }> {
  const names = Object.keys(wanted) as Name[];
  const programOf = (name: Name): ProgramName => (name === "cache" ? "redis" : name);
  const binaries = await ownBinaries(names.map(programOf));
  const { dataDir, started } = await ownFolder();
  const start = { redis: startRedis, cache: startCacheRedis, mongo: startMongo, s3: startS3 };
  const args = { redis: redisArgs, cache: redisArgs, mongo: mongoArgs, s3: [] };
  const entries = await Promise.all(
    names.map(async (name) => {
      const server = await start[name]({
        binary: binaries[programOf(name)] as string,
        dataDir: join(dataDir, name),
        args: args[name],
      });
      started.push(server);
      return [name, server] as const;
    }),
  );
  const others = await testStores({ database: names.includes("mongo" as Name) ? "new" : "migrated" });
  const stores = Object.assign(others, ...started.map((server) => server.env)) as Stores;
  const own = Object.fromEntries(entries) as Pick<OwnServers, Name>;
  return { ...own, stores: "redis" in own ? withRedis(stores, { REDIS_URL: stores.REDIS_URL }) : stores };
}

/** Two Redis servers for the running test: the second starts as a replica of the first. */
export async function ownRedisPair(): Promise<readonly [Server, Server]> {
  const { redis: binary } = await ownBinaries(["redis"]);
  const { dataDir, started } = await ownFolder();
  const start = async (name: string, ...args: string[]) => {
    const options = { dataDir: join(dataDir, name), args: [...redisArgs, "--repl-diskless-sync-delay", "0", ...args] };
    const server = await startRedis({ binary: binary as string, ...options });
    started.push(server);
    return server;
  };
  const first = await start("first");
  return [first, await start("second", "--replicaof", "127.0.0.1", String(first.port))];
}

/** A cluster of three primaries for the running test, each with a replica if `replicas` is true. */
export async function ownRedisCluster(replicas = false): Promise<RedisCluster> {
  const { redis: binary } = await ownBinaries(["redis"]);
  const { dataDir, started } = await ownFolder();
  const args = [...clusterArgs, "--repl-diskless-sync-delay", "0"];
  const cluster = await startRedisCluster({ binary: binary as string, dataDir, args, replicas });
  started.push(...cluster.servers);
  return cluster;
}

/** A primary, a replica, and three sentinels for the running test. */
export async function ownSentinels() {
  const [primary, replica] = await ownRedisPair();
  const { redis: binary } = await ownBinaries(["redis"]);
  const { dataDir, started } = await ownFolder();
  const start = async (name: string) => {
    const folder = { binary: binary as string, dataDir: join(dataDir, name) };
    started.push(await startSentinel({ ...folder, primaryPort: primary.port, quorum: 2 }));
  };
  await Promise.all(["1", "2", "3"].map(start));
  const nodes = started.map(({ port }) => `127.0.0.1:${port}`);
  return { primary, replica, sentinels: [...started], env: { REDIS_SENTINELS: nodes.join(",") } };
}

/** Three MongoDB servers for the running test, as one replica set: another becomes primary within seconds. */
export async function ownMongoSet(): Promise<readonly Server[]> {
  const { mongo: binary } = await ownBinaries(["mongo"]);
  const { dataDir, started } = await ownFolder();
  // On SIGTERM a primary would wait for its clients.
  const args = [...mongoArgs, "--setParameter", "shutdownTimeoutMillisForSignaledShutdown=0"];
  const start = async (name: string) => {
    const folder = { binary: binary as string, dataDir: join(dataDir, name) };
    started.push(await startMongo({ ...folder, args, asMember: true }));
  };
  await Promise.all(["first", "second", "third"].map(start));
  const hosts = started.map(({ port }) => `127.0.0.1:${port}`);
  await initiateMongoSet(hosts[0] as string, hosts);
  const env = { MONGODB_URI: `mongodb://${hosts.join(",")}/inference?replicaSet=rs0` };
  return started.map((server) => Object.assign(server, { env }));
}
