import mongoose from "mongoose";
import { until } from "./program.ts";
import { createServer, type Folder, openFolder, type Server, type ServerOptions, startServer } from "./server.ts";

const uriOf = (hosts: readonly string[]) => `mongodb://${hosts.join(",")}/inference?replicaSet=rs0`;

/** mongod as a replica set of one, because transactions need a replica set. */
export async function startMongo(options: ServerOptions): Promise<Server> {
  const folder = await openFolder(options);
  const { port } = folder;
  return startServer(
    folder,
    mongod(options, folder, [`127.0.0.1:${port}`], () => becomePrimary(port)),
  );
}

/**
 * A new replica set with one mongod for each entry, for testing failover: another member becomes primary within seconds.
 * Resolves once there is a primary and the others are its secondaries.
 */
export async function startMongoSet(members: readonly ServerOptions[]): Promise<readonly Server[]> {
  const folders = await Promise.all(members.map(openFolder));
  const hosts = folders.map(({ port }) => `127.0.0.1:${port}`);
  const ping = (port: number) => asAdmin(port, (admin) => admin.command({ ping: 1 }));
  const servers = folders.map((folder, n) =>
    createServer(
      folder,
      mongod(members[n] as ServerOptions, folder, hosts, () => ping(folder.port)),
    ),
  );
  try {
    const started = await Promise.allSettled(servers.map((server) => server.start()));
    const failed = started.find(({ status }) => status === "rejected");
    if (failed?.status === "rejected") throw failed.reason;
    await initiate((folders[0] as Folder).port, hosts);
    return servers;
  } catch (error) {
    for (const server of servers) await server.stop();
    throw error;
  }
}

async function initiate(port: number, hosts: readonly string[]): Promise<void> {
  const members = hosts.map((host, n) => ({ _id: n, host }));
  const settings = { electionTimeoutMillis: 2_000, heartbeatIntervalMillis: 500 };
  await asAdmin(port, (admin) => admin.command({ replSetInitiate: { _id: "rs0", members, settings } }));
  const expected = ["PRIMARY", ...hosts.slice(1).map(() => "SECONDARY")].join();
  const isReady = async () => {
    const status = await asAdmin(port, (admin) => admin.command({ replSetGetStatus: 1 }));
    const states = (status["members"] as { stateStr: string }[]).map(({ stateStr }) => stateStr).sort();
    if (states.join() !== expected) throw new Error(states.join());
  };
  await until(isReady, AbortSignal.timeout(readyTimeoutMs));
}

// When its port has changed, mongod first tries to reach the old one, for up to 30 s.
const readyTimeoutMs = 60_000;

function mongod(
  options: ServerOptions,
  { port, data }: Folder,
  hosts: readonly string[],
  isReady: () => Promise<unknown>,
) {
  const listen = ["--replSet", "rs0", "--bind_ip", "127.0.0.1", "--port", String(port), "--dbpath", data];
  const sizes = ["--wiredTigerCacheSizeGB", "0.5", "--oplogSize", "512"];
  const quiet = ["--nounixsocket", "--quiet", "--setParameter", "diagnosticDataCollectionEnabled=false"];
  return {
    name: "MongoDB",
    command: options.binary,
    args: [...listen, ...sizes, ...quiet, ...(options.args ?? [])],
    env: { MONGODB_URI: uriOf(hosts) },
    isReady,
    readyTimeoutMs,
  };
}

/** Each call has its own client: one whose first connection failed stays closed. */
async function asAdmin<T>(port: number, act: (admin: mongoose.mongo.Db) => Promise<T>): Promise<T> {
  const client = new mongoose.mongo.MongoClient(`mongodb://127.0.0.1:${port}/`, {
    directConnection: true,
    serverSelectionTimeoutMS: 1_000,
    socketTimeoutMS: 10_000,
  });
  try {
    return await act(client.db("admin"));
  } finally {
    await client.close();
  }
}

const becomePrimary = (port: number): Promise<void> =>
  asAdmin(port, async (admin) => {
    const host = `127.0.0.1:${port}`;
    const hello = await admin.command({ hello: 1 });
    if (hello.isWritablePrimary && hello.me === host) return;
    await configure(admin, host);
    throw new Error("it is not the primary yet");
  });

const notYetInitialized = 94;

/** The stored replica set configuration names host and port, so a changed port needs a forced reconfiguration. */
async function configure(admin: mongoose.mongo.Db, host: string): Promise<void> {
  const members = [{ _id: 0, host }];
  try {
    const { config } = await admin.command({ replSetGetConfig: 1 });
    if (config.members[0].host === host) return;
    await admin.command({ replSetReconfig: { ...config, members, version: config.version + 1 }, force: true });
  } catch (error) {
    if (!(error instanceof mongoose.mongo.MongoServerError) || error.code !== notYetInitialized) throw error;
    await admin.command({ replSetInitiate: { _id: "rs0", members } });
  }
}
