import mongoose, { type Connection } from "mongoose";
import type { Clock } from "./clock.ts";
import type { Logger } from "./logger.ts";

export type Mongo = Awaited<ReturnType<typeof connectMongo>>;

const options = {
  useBigInt64: true,
  bufferCommands: false,
  serverSelectionTimeoutMS: 1_000,
  // Also the timeout of a heartbeat: a write to a server that hangs fails after two of them.
  connectTimeoutMS: 2_000,
  heartbeatFrequencyMS: 1_000,
  // Driver 7.8 throws outside of any promise if it streams heartbeats: `useBigInt64` also reads the topology version of an
  // operation's error, and its monitor makes a Long of it as of a number. That needs an error of a
  // deposed primary in the half second between a monitor's connection and its first streamed heartbeat. A poll sends no version.
  // It notices an election up to a second later, but at most half a second after an operation that waits for a primary.
  serverMonitoringMode: "poll",
  maxPoolSize: 50,
  writeConcern: { w: "majority", journal: true },
  autoIndex: false,
  autoCreate: false,
} as const;

const maxAttempts = 10;

/** Retries the first connection: startup is not latency-critical, and on a busy machine the first reply may be slow. */
async function connect(uri: string, log: Logger): Promise<Connection> {
  for (let attempt = 1; ; attempt++) {
    const connection = mongoose.createConnection(uri, options);
    connection.on("error", (error: Error) => log.warn({ err: error.message }, "mongodb"));
    try {
      return await connection.asPromise();
    } catch (error) {
      await connection.close();
      if (attempt === maxAttempts || !(error instanceof mongoose.Error.MongooseServerSelectionError)) throw error;
    }
  }
}

/**
 * One connection for a process. Int64 is read as bigint. Nothing is buffered while the server is unavailable; operations fail
 * within a second instead of thirty. Writes are journaled by a majority.
 */
export async function connectMongo(uri: string, clock: Clock, log: Logger) {
  const connection = await connect(uri, log);
  const db = connection.getClient().db(connection.name);
  let upSince: number | undefined = clock.now();
  let closing = false;
  // Mongoose's own events do not report a server that hangs.
  connection.getClient().on("topologyDescriptionChanged", ({ newDescription }) => {
    const up = [...newDescription.servers.values()].some((server) => server.isWritable);
    if (!up && upSince !== undefined && !closing) log.warn("mongodb is unavailable");
    upSince = up ? (upSince ?? clock.now()) : undefined;
  });
  return {
    connection,
    /** Unix milliseconds since when the server has been reachable without a break; undefined while it is not. */
    upSince: () => upSince,
    /** For commands that `connection` has no method for. */
    db,
    ping: async (): Promise<void> => {
      await db.command({ ping: 1 }, { timeoutMS: 1_000 });
    },
    close: (): Promise<void> => {
      closing = true;
      return connection.close();
    },
  };
}

export const duplicateKey = 11_000;

/** An insert or update that a unique index refused. */
export const isDuplicate = (error: unknown): boolean =>
  error instanceof mongoose.mongo.MongoServerError && error.code === duplicateKey;

const answerTimeoutMs = 4_000;

/** An operation took too long. It may still be carried out: `operation` settles if the server answers after all. */
export class UnansweredError extends mongoose.mongo.MongoNetworkTimeoutError {
  readonly operation: Promise<unknown>;

  constructor(operation: Promise<unknown>, timeoutMs: number) {
    super(`MongoDB has not answered for ${timeoutMs} ms`);
    this.operation = operation;
  }
}

/**
 * The driver (7.8) waits forever if it writes to a closed socket before it learns of the close, as happens when a server is
 * killed under load, and for a server that answers heartbeats only. Such an operation is rejected here, with `UnansweredError`.
 */
export async function answered<T>(operation: Promise<T>, timeoutMs = answerTimeoutMs): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const expire = () => reject(new UnansweredError(operation, timeoutMs));
  const timer = setTimeout(expire, timeoutMs);
  try {
    return await Promise.race([operation, late]);
  } finally {
    clearTimeout(timer);
  }
}
