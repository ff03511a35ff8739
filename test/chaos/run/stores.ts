import { join } from "node:path";
import { Redis } from "ioredis";
import mongoose from "mongoose";
import {
  cacheDirOf,
  findBinaries,
  type Server,
  startMongo,
  startRedis,
  startS3,
  until,
} from "../../../infra/embedded/index.ts";
import { initiateMongoSet, inStep, type Member, swapRedis } from "../../support/failover.ts";
import { type Network, startWire, type Wire } from "./network.ts";

/** Redis with a replica, three members of MongoDB, and S3: each behind a proxy through which all traffic goes. */
export interface ChaosStores {
  /** The service's addresses of the stores; each process has a separate proxy to Redis. */
  readonly env: Readonly<Record<string, string>>;
  readonly redis: RedisSet;
  readonly mongo: MongoSet;
  readonly s3: { readonly server: Server; readonly wire: Wire };
  stop(): Promise<void>;
}

/** A Redis that can fail over, whoever triggers it. */
export interface RedisSet {
  /** Another proxy to the current primary. */
  wire(): Promise<Wire>;
  primary(): Member;
  replica(): Member;
  /** A managed failover: nothing is lost, and no connection ends. */
  swap(): Promise<void>;
  /** The primary dies, and the replica takes over with its current data. */
  fail(): Promise<void>;
}

export interface MongoSet {
  readonly members: readonly { readonly server: Server; readonly wire: Wire }[];
  /** The number of the primary's member. */
  primary(): Promise<number>;
  stepDown(): Promise<void>;
  /** The runner's own client, which follows the primary. */
  readonly client: mongoose.mongo.MongoClient;
}

const members = [0, 1, 2] as const;
const patience = () => AbortSignal.timeout(60_000);

async function startRedisSet(binary: string, dataDir: string, network: Network, stops: (() => Promise<void>)[]) {
  const start = async (name: string, ...more: string[]): Promise<Member> => {
    const args = ["--appendfsync", "no", "--repl-diskless-sync-delay", "0", ...more];
    const server = await startRedis({ binary, dataDir: join(dataDir, name), args });
    const control = new Redis(server.port, "127.0.0.1", { maxRetriesPerRequest: null });
    control.on("error", () => {});
    stops.push(async () => {
      control.disconnect();
      await server.stop();
    });
    return { server, control };
  };
  const first = await start("redis-a");
  const second = await start("redis-b", "--replicaof", "127.0.0.1", String(first.server.port));
  await inStep(first, second);
  let [primary, replica] = [first, second];
  const wires: Wire[] = [];
  const lead = () => {
    [primary, replica] = [replica, primary];
  };
  const set: RedisSet = {
    async wire() {
      const wire = await startWire(network.host, () => primary.server.port);
      wires.push(wire);
      stops.unshift(async () => wire.close());
      return wire;
    },
    primary: () => primary,
    replica: () => replica,
    async swap() {
      const [old, next] = [primary, replica];
      await swapRedis(old, next, lead);
      // New connections go to the new primary; the old ones reach a read-only replica.
      await inStep(next, old);
    },
    async fail() {
      const [old, next] = [primary, replica];
      await old.server.kill();
      await next.control.replicaof("NO", "ONE");
      lead();
      for (const wire of wires) wire.cut();
      await old.server.start();
      await old.control.replicaof("127.0.0.1", next.server.port);
      await inStep(next, old);
    },
  };
  return set;
}

async function startMongoSet(binary: string, dataDir: string, network: Network, stops: (() => Promise<void>)[]) {
  // On SIGTERM a primary would wait for its clients.
  const args = ["--setParameter", "shutdownTimeoutMillisForSignaledShutdown=0"];
  const started = await Promise.all(
    members.map(async (n) => {
      const server = await startMongo({ binary, dataDir: join(dataDir, `mongo-${n}`), args, asMember: true });
      stops.push(() => server.stop());
      const wire = await startWire(network.host, () => server.port);
      stops.unshift(async () => wire.close());
      return { server, wire };
    }),
  );
  const hosts = started.map(({ wire }) => `${network.host}:${wire.port}`);
  await initiateMongoSet(`127.0.0.1:${started[0]?.server.port}`, hosts);
  const uri = `mongodb://${hosts.join(",")}/inference?replicaSet=rs0`;
  const options = { useBigInt64: true, serverMonitoringMode: "poll", serverSelectionTimeoutMS: 30_000 } as const;
  const client = await new mongoose.mongo.MongoClient(uri, options).connect();
  const direct = started.map(
    ({ server }) =>
      new mongoose.mongo.MongoClient(`mongodb://127.0.0.1:${server.port}/`, {
        directConnection: true,
        serverSelectionTimeoutMS: 500,
        connectTimeoutMS: 500,
        socketTimeoutMS: 2_000,
      }),
  );
  stops.unshift(async () => {
    await Promise.all([client, ...direct].map((each) => each.close()));
  });
  const isPrimary = (n: number) =>
    (direct[n] as mongoose.mongo.MongoClient)
      .db("admin")
      .command({ hello: 1 })
      .then(({ isWritablePrimary }) => isWritablePrimary === true)
      .catch(() => false);
  async function primary(): Promise<number> {
    let found: number | undefined;
    await until(async () => {
      const each = await Promise.all(members.map(isPrimary));
      found = members.find((n) => each[n]);
      if (found === undefined) throw new Error("no member is the primary");
    }, patience());
    return found as number;
  }
  const set: MongoSet = {
    members: started,
    primary,
    client,
    async stepDown() {
      const admin = (direct[await primary()] as mongoose.mongo.MongoClient).db("admin");
      await admin.command({ replSetStepDown: 5, secondaryCatchUpPeriodSecs: 2 });
    },
  };
  return { set, uri };
}

export async function startStores(dataDir: string, network: Network): Promise<ChaosStores> {
  const env = { ...process.env, REDIS_URL: "", MONGODB_URI: "", S3_ENDPOINT: "" };
  const binaries = await findBinaries({ env, cacheDir: cacheDirOf(env) });
  const stops: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (const each of stops.splice(0)) await each();
  };
  try {
    const [redis, mongo, server] = await Promise.all([
      startRedisSet(binaries.redis as string, dataDir, network, stops),
      startMongoSet(binaries.mongo as string, dataDir, network, stops),
      startS3({ binary: binaries.s3 as string, dataDir: join(dataDir, "s3") }),
    ]);
    stops.push(() => server.stop());
    const wire = await startWire(network.host, () => server.port);
    stops.unshift(async () => wire.close());
    const endpoint = `http://${network.host}:${wire.port}`;
    return {
      env: { ...server.env, S3_ENDPOINT: endpoint, MONGODB_URI: mongo.uri },
      redis,
      mongo: mongo.set,
      s3: { server, wire },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
