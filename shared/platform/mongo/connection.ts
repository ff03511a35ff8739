import mongoose, { type ClientSession, type Connection } from "mongoose";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import { watchHeartbeats } from "./heartbeats.ts";
import { limitTimes, withMongoTimeout } from "./timeouts.ts";

export type Mongo = Awaited<ReturnType<typeof connectMongo>>;

const options = {
  useBigInt64: true,
  bufferCommands: false,
  serverSelectionTimeoutMS: 1_000,
  // This is also the timeout of a heartbeat: a write to a server that hangs fails after two of them.
  connectTimeoutMS: 2_000,
  heartbeatFrequencyMS: 1_000,
  // Driver 7.8 throws outside of any promise if it streams heartbeats: `useBigInt64` also applies to the topology
  // version of an operation's error, which its monitor then converts to a Long as if it were a number. It takes an
  // error of a deposed primary in the half second between a monitor's connection and its first streamed heartbeat. A
  // poll sends no version. It detects an election up to a second later, but at most half a second after an operation
  // that waits for a primary.
  serverMonitoringMode: "poll",
  maxPoolSize: 50,
  writeConcern: { w: "majority", journal: true },
  autoIndex: false,
  autoCreate: false,
} as const;

const maxAttempts = 10;
/** Limits how long a transaction is repeated because it conflicts with others. */
const transactionMs = 60_000;
const pingMs = 1_000;

type Work<Result> = (session: ClientSession) => Promise<Result>;

/** Retries the first connection: startup is not latency-critical, and on a busy machine the first reply may be slow. */
async function connect(uri: string, log: Logger): Promise<Connection> {
  for (let attempt = 1; ; attempt++) {
    const connection = mongoose.createConnection(uri, options);
    connection.on("error", (error: Error) => log.warn({ err: error.message }, "error of the MongoDB connection"));
    try {
      return await connection.asPromise();
    } catch (error) {
      await connection.close();
      if (attempt === maxAttempts || !(error instanceof mongoose.Error.MongooseServerSelectionError)) throw error;
    }
  }
}

/**
 * Opens the connection of a process. Int64 is read as bigint. Nothing is buffered while the server is unavailable;
 * operations fail within a second instead of thirty, and none waits forever for a response (`UnansweredError`). Writes
 * are journaled by a majority.
 */
export async function connectMongo(uri: string, clock: Clock, log: Logger) {
  const connection = await connect(uri, log);
  const client = connection.getClient();
  limitTimes(client);
  const stopWatching = watchHeartbeats(client, clock, log);
  const db = client.db(connection.name);
  // Models take their collections from here.
  Object.assign(connection, { db });
  let upSince: number | undefined = clock.now();
  let closing = false;
  // Mongoose's own events do not report a server that hangs.
  client.on("topologyDescriptionChanged", ({ newDescription }) => {
    const up = [...newDescription.servers.values()].some((server) => server.isWritable);
    if (!up && upSince !== undefined && !closing) log.warn("mongodb is unavailable");
    upSince = up ? (upSince ?? clock.now()) : undefined;
  });
  return {
    connection,
    /** Unix milliseconds since which the server has been continuously reachable. Undefined while it is not. */
    upSince: () => upSince,
    /** Runs commands for which `connection` has no method. */
    db,
    ping: async (): Promise<void> => {
      await withMongoTimeout(db.command({ ping: 1 }), pingMs);
    },
    /** The work sees its own writes, on whichever server it reads. */
    inSession: <Result>(work: Work<Result>): Promise<Result> => client.withSession(work),
    inSnapshot: <Result>(work: Work<Result>): Promise<Result> => client.withSession({ snapshot: true }, work),
    /** Repeats the work while it conflicts with others. After an `UnansweredError` its outcome is unknown. */
    inTransaction<Result>(work: Work<Result>): Promise<Result> {
      const endsAt = performance.now() + transactionMs;
      const attempt = async (session: ClientSession) => {
        if (performance.now() >= endsAt) throw new Error("the transaction conflicts with others");
        return work(session);
      };
      const options = { readConcern: { level: "snapshot" } } as const;
      const done = client.withSession((session) => session.withTransaction(attempt, options));
      return withMongoTimeout(done, transactionMs);
    },
    close: (): Promise<void> => {
      closing = true;
      stopWatching();
      return withMongoTimeout(connection.close());
    },
  };
}

export const duplicateKey = 11_000;

/** Returns true if a unique index refused an insert or update. */
export const isDuplicate = (error: unknown): boolean =>
  error instanceof mongoose.mongo.MongoServerError && error.code === duplicateKey;

/** Catches the error of an insert or upsert that another process was faster with. */
export function ignoreDuplicate(error: unknown): undefined {
  if (!isDuplicate(error)) throw error;
}
