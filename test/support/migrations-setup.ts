import { onTestFinished } from "vitest";
import { systemClock } from "../../shared/platform/clock.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo } from "../../shared/platform/mongo/connection.ts";
import { type Migration, type ModuleSchema, migrate } from "../../shared/platform/mongo/migrations.ts";
import { testStores } from "./servers.ts";

export const log = createLogger("test", "silent");

/** A new database, and connections to it that end with the test. */
export async function emptyDatabase() {
  const { MONGODB_URI: uri } = await testStores({ database: "new" });
  const connect = async () => {
    const mongo = await connectMongo(uri, systemClock, log);
    onTestFinished(() => mongo.close());
    return mongo;
  };
  const mongo = await connect();
  const run = (migrations: readonly Migration[], options: { signal?: AbortSignal; offline?: boolean } = {}) =>
    migrate({ mongo, schemas: [schemaOf(...migrations)], clock: systemClock, log, ...options });
  return { uri, mongo, connect, run };
}

export const schemaOf = (...migrations: Migration[]): ModuleSchema => ({ module: "test", migrations });

/** A migration that counts its runs. */
export function counted(what: string, more: Partial<Migration> = {}) {
  const migration = { runs: 0, what, run: async () => void (migration.runs += 1), ...more };
  return migration;
}
