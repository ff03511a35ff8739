import mongoose from "mongoose";
import { createProgram, type Program, until } from "./program.ts";
import { type Folder, openFolder, type Server, type ServerOptions, serverOf } from "./server.ts";

const addressOf = (hosts: readonly string[]) => `mongodb://${hosts.join(",")}/inference?replicaSet=rs0`;

/** mongod as a replica set of one, because transactions need a replica set. */
export async function startMongo(options: ServerOptions): Promise<Server> {
  const folder = await openFolder(options);
  const { port } = folder;
  const program = createMongod(options, folder, () => becomePrimary(port));
  const server = serverOf(program, folder, { MONGODB_URI: addressOf([`127.0.0.1:${port}`]) });
  await server.start();
  return server;
}

/**
 * mongods as one new replica set, for trying what a failover does. A primary that is gone is replaced within seconds.
 * Resolves once there is a primary and every other one follows it.
 */
export async function startMongoSet(each: readonly ServerOptions[]): Promise<readonly Server[]> {
  const folders = await Promise.all(each.map(openFolder));
  const hosts = folders.map(({ port }) => `127.0.0.1:${port}`);
  const servers = folders.map((folder, at) => {
    const program = createMongod(each[at] as ServerOptions, folder, () =>
      asAdmin(folder.port, (admin) => admin.command({ ping: 1 })),
    );
    return serverOf(program, folder, { MONGODB_URI: addressOf(hosts) });
  });
  const started = await Promise.allSettled(servers.map((server) => server.start()));
  const initiated = await Promise.allSettled(
    started.some(({ status }) => status === "rejected") ? [] : [initiate(folders, hosts)],
  );
  const failed = [...started, ...initiated].find((outcome) => outcome.status === "rejected");
  if (!failed) return servers;
  for (const server of servers) await server.stop();
  throw failed.reason;
}

async function initiate([first]: readonly Folder[], hosts: readonly string[]): Promise<void> {
  const port = (first as Folder).port;
  const members = hosts.map((host, at) => ({ _id: at, host }));
  const settings = { electionTimeoutMillis: 2_000, heartbeatIntervalMillis: 500 };
  await asAdmin(port, (admin) => admin.command({ replSetInitiate: { _id: "rs0", members, settings } }));
  const ready = async () => {
    const status = await asAdmin(port, (admin) => admin.command({ replSetGetStatus: 1 }));
    const states = (status["members"] as { stateStr: string }[]).map(({ stateStr }) => stateStr).sort();
    if (states.join() !== ["PRIMARY", ...hosts.slice(1).map(() => "SECONDARY")].join()) throw new Error(states.join());
  };
  await until(ready, AbortSignal.timeout(readyTimeoutMs));
}

// On another port than before mongod first asks whoever has the old one now, for up to 30 s.
const readyTimeoutMs = 60_000;

function createMongod(options: ServerOptions, folder: Folder, isReady: () => Promise<unknown>): Program {
  const { port } = folder;
  const where = ["--replSet", "rs0", "--bind_ip", "127.0.0.1", "--port", String(port), "--dbpath", folder.data];
  const sizes = ["--wiredTigerCacheSizeGB", "0.5", "--oplogSize", "512"];
  const quiet = ["--nounixsocket", "--quiet", "--setParameter", "diagnosticDataCollectionEnabled=false"];
  return createProgram({
    name: "MongoDB",
    command: options.binary,
    args: [...where, ...sizes, ...quiet, ...(options.args ?? [])],
    env: process.env,
    output: folder.log,
    onSpawn: (pid) => folder.keep({ pid }),
    readyTimeoutMs,
    ready: (signal) => until(isReady, signal),
  });
}

/** A client whose first connection failed stays closed: each attempt has its own. */
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

/** The configuration in the data names host and port: another port than before is written into it by force. */
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
