import mongoose from "mongoose";
import { openFolder, type Server, type ServerOptions, startServer } from "./server.ts";

// After a port change, mongod first tries to reach the old port for up to 30 s.
const readyTimeoutMs = 60_000;

/** Starts mongod as a single-member replica set, for transactions. With `asMember` it is not in a set yet. */
export async function startMongo(options: ServerOptions & { readonly asMember?: true }): Promise<Server> {
  const folder = await openFolder(options.dataDir);
  const { data, port } = folder;
  const host = `127.0.0.1:${port}`;
  const listen = ["--replSet", "rs0", "--bind_ip", "127.0.0.1", "--port", String(port), "--dbpath", data];
  const sizes = ["--wiredTigerCacheSizeGB", "0.5", "--oplogSize", "512"];
  const quiet = ["--nounixsocket", "--quiet", "--setParameter", "diagnosticDataCollectionEnabled=false"];
  return startServer(folder, {
    name: "MongoDB",
    command: options.binary,
    args: [...listen, ...sizes, ...quiet, ...(options.args ?? [])],
    env: { MONGODB_URI: `mongodb://${host}/inference?replicaSet=rs0` },
    isReady: () => asAdmin(host, options.asMember ? (admin) => admin.command({ ping: 1 }) : becomePrimary(host)),
    readyTimeoutMs,
  });
}

/** Each call has its own client, because a client whose first connection failed stays closed. */
async function asAdmin(host: string, act: (admin: mongoose.mongo.Db) => Promise<unknown>): Promise<void> {
  const client = new mongoose.mongo.MongoClient(`mongodb://${host}/`, {
    directConnection: true,
    serverSelectionTimeoutMS: 1_000,
    socketTimeoutMS: 10_000,
  });
  try {
    await act(client.db("admin"));
  } finally {
    await client.close();
  }
}

const notYetInitialized = 94;

const becomePrimary = (host: string) => async (admin: mongoose.mongo.Db) => {
  const hello = await admin.command({ hello: 1 });
  if (hello.isWritablePrimary && hello.me === host) return;
  const members = [{ _id: 0, host }];
  try {
    const { config } = await admin.command({ replSetGetConfig: 1 });
    const moved = { ...config, members, version: config.version + 1 };
    if (config.members[0].host !== host) await admin.command({ replSetReconfig: moved, force: true });
  } catch (error) {
    if (!(error instanceof mongoose.mongo.MongoServerError) || error.code !== notYetInitialized) throw error;
    await admin.command({ replSetInitiate: { _id: "rs0", members } });
  }
  throw new Error("it is not the primary yet");
};
