import mongoose, { type Connection } from "mongoose";
import type { Clock } from "./clock.ts";
import type { Logger } from "./logger.ts";

export interface Mongo {
  readonly connection: Connection;
  /** Unix milliseconds since when the server has been reachable without a break; undefined while it is not. */
  upSince(): number | undefined;
  ping(): Promise<void>;
  close(): Promise<void>;
}

const options = {
  useBigInt64: true,
  bufferCommands: false,
  serverSelectionTimeoutMS: 1_000,
  // Also how long a check of the server may take: a write to one that hangs fails after two of them.
  connectTimeoutMS: 2_000,
  heartbeatFrequencyMS: 1_000,
  maxPoolSize: 50,
  writeConcern: { w: "majority", journal: true },
  autoIndex: false,
  autoCreate: false,
} as const;

const mostTries = 10;

/** At its start a process is waited for by nobody: on a busy machine the first answer may take longer than any later one. */
async function connect(uri: string, log: Logger): Promise<Connection> {
  for (let tries = 1; ; tries++) {
    const connection = mongoose.createConnection(uri, options);
    connection.on("error", (error: Error) => log.warn({ err: error.message }, "mongodb"));
    try {
      return await connection.asPromise();
    } catch (error) {
      await connection.close();
      if (tries === mostTries || !(error instanceof mongoose.Error.MongooseServerSelectionError)) throw error;
    }
  }
}

/**
 * One connection for a process. Reads give bigint for Int64; nothing is buffered while the server is away; a lost
 * server is an error within a second instead of thirty. Writes are journaled by a majority.
 */
export async function connectMongo(uri: string, clock: Clock, log: Logger): Promise<Mongo> {
  const connection = await connect(uri, log);
  let upSince: number | undefined = clock.now();
  let closing = false;
  // Mongoose's own events miss a server that hangs.
  connection.getClient().on("topologyDescriptionChanged", ({ newDescription }) => {
    const up = [...newDescription.servers.values()].some((server) => server.isWritable);
    if (!up && upSince !== undefined && !closing) log.warn("mongodb is away");
    upSince = up ? (upSince ?? clock.now()) : undefined;
  });
  return {
    connection,
    upSince: () => upSince,
    ping: async () => {
      await connection.db?.command({ ping: 1 }, { timeoutMS: 1_000 });
    },
    close: () => {
      closing = true;
      return connection.close();
    },
  };
}

export const duplicateKey = 11_000;

/** An insert or update that a unique index refused. */
export const isDuplicate = (error: unknown): boolean =>
  error instanceof mongoose.mongo.MongoServerError && error.code === duplicateKey;

const unansweredMs = 5_000;

/**
 * The driver (7.8) waits for ever when it writes to a socket that is closed, but of which it has not yet heard so: a
 * server that is killed under load leaves such writes behind. They count as failed: nobody knows whether they stand.
 */
export async function answered<T>(operation: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(reject, unansweredMs, new Error(`MongoDB has not answered for ${unansweredMs} ms`));
  try {
    return await Promise.race([operation, late]);
  } finally {
    clearTimeout(timer);
  }
}
