import { auditSchema } from "../../api/audit/index.ts";
import { keysSchema } from "../../api/keys/index.ts";
import { refusalsSchema } from "../../api/refusals/index.ts";
import { sessionsSchema } from "../../api/sessions/index.ts";
import { sharedSchemas } from "../../shared/migrations.ts";
import { systemClock } from "../../shared/platform/clock.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { type ModuleSchema, migrate } from "../../shared/platform/migrations.ts";
import { connectMongo, type Mongo } from "../../shared/platform/mongo.ts";

/** The schemas of all modules, as `npm run migrate` applies them. */
export const allSchemas: readonly ModuleSchema[] = [
  ...sharedSchemas,
  keysSchema,
  sessionsSchema,
  auditSchema,
  refusalsSchema,
];

const log = createLogger("test", "silent");

/** Prepares a test's database, for these modules or for all. */
export const migrated = (mongo: Mongo, schemas: readonly ModuleSchema[] = allSchemas) =>
  migrate({ mongo, schemas, clock: systemClock, log });

const ready = new Map<string, Promise<void>>();

/** Prepares a database before a process starts on it: once, or again after its server has ended. */
export function migrateDatabase(uri: string): Promise<void> {
  const work = ready.get(uri) ?? migrateOnce(uri);
  ready.set(uri, work);
  return work;
}

async function migrateOnce(uri: string): Promise<void> {
  const mongo = await connectMongo(uri, systemClock, log);
  try {
    await migrated(mongo);
  } finally {
    await mongo.close();
  }
}
