import { apiSchemas } from "../../api/migrations.ts";
import { sharedSchemas } from "../../shared/migrations.ts";
import { systemClock } from "../../shared/platform/clock.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo, type Mongo } from "../../shared/platform/mongo/connection.ts";
import { type ModuleSchema, migrate } from "../../shared/platform/mongo/migrations.ts";

/** The schemas of all modules, as `npm run migrate` applies them. */
export const allSchemas: readonly ModuleSchema[] = [...sharedSchemas, ...apiSchemas];

/** The comment of operations that are a test's own: they may ask every shard. */
export const ofTest = "of a test";

const log = createLogger("test", "silent");

/** Prepares a test's database, for these modules or for all. */
export const migrated = async (mongo: Mongo, schemas: readonly ModuleSchema[] = allSchemas): Promise<void> => {
  const done = ready.get(mongo.connection.name);
  await (done ?? migrate({ mongo, schemas, clock: systemClock, log }));
};

/** By their unique names. */
const ready = new Map<string, Promise<void>>();

/** Prepares a database before a process starts on it. */
export async function migrateDatabase(uri: string): Promise<void> {
  // An address of several hosts is not a URL.
  const name = /^\w+:\/\/[^/]+\/([^?]*)/.exec(uri)?.[1] ?? "";
  const work = ready.get(name) ?? migrateOnce(uri);
  // The databases of servers that one test starts have all the same name.
  if (name.startsWith("t_")) ready.set(name, work);
  await work;
}

async function migrateOnce(uri: string): Promise<void> {
  const mongo = await connectMongo(uri, systemClock, log);
  try {
    await migrate({ mongo, schemas: allSchemas, clock: systemClock, log });
  } finally {
    await mongo.close();
  }
}
