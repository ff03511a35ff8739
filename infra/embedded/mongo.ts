import mongoose from "mongoose";
import { createProgram, until } from "./program.ts";
import { openFolder, type Server, type ServerOptions, serverOf } from "./server.ts";

/** mongod as a replica set of one, because transactions need a replica set. */
export async function startMongo(options: ServerOptions): Promise<Server> {
  const folder = await openFolder(options);
  const { port } = folder;
  const where = ["--replSet", "rs0", "--bind_ip", "127.0.0.1", "--port", String(port), "--dbpath", folder.data];
  const sizes = ["--wiredTigerCacheSizeGB", "0.5", "--oplogSize", "512"];
  const quiet = ["--nounixsocket", "--quiet", "--setParameter", "diagnosticDataCollectionEnabled=false"];
  const program = createProgram({
    name: "MongoDB",
    command: options.binary,
    args: [...where, ...sizes, ...quiet, ...(options.args ?? [])],
    env: process.env,
    output: folder.log,
    onSpawn: (pid) => folder.keep({ pid }),
    // On another port than before mongod first asks whoever has the old one now, for up to 30 s.
    readyTimeoutMs: 60_000,
    ready: (signal) => until(() => becomePrimary(port), signal),
  });
  const server = serverOf(program, folder, { MONGODB_URI: `mongodb://127.0.0.1:${port}/inference?replicaSet=rs0` });
  await server.start();
  return server;
}

/** A client whose first connection failed stays closed: each attempt has its own. */
async function becomePrimary(port: number): Promise<void> {
  const host = `127.0.0.1:${port}`;
  const client = new mongoose.mongo.MongoClient(`mongodb://${host}/`, {
    directConnection: true,
    serverSelectionTimeoutMS: 1_000,
    socketTimeoutMS: 10_000,
  });
  try {
    const admin = client.db("admin");
    const hello = await admin.command({ hello: 1 });
    if (hello.isWritablePrimary && hello.me === host) return;
    await configure(admin, host);
    throw new Error("it is not the primary yet");
  } finally {
    await client.close();
  }
}

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
