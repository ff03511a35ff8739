import type mongoose from "mongoose";
import { onTestFinished } from "vitest";
import { systemClock } from "../../shared/platform/clock.ts";
import { randomBase62 } from "../../shared/platform/ids.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo, type Mongo } from "../../shared/platform/mongo/connection.ts";
import { atEndOfFile } from "./end-of-file.ts";
import { migrateDatabase, ofTest } from "./schema.ts";

/**
 * Migrating an empty database takes half a second of processor time, emptying a migrated one a twentieth of that. So each worker
 * of Vitest has its migrated databases, and a test gets one that looks as if it were new.
 */
interface Pool {
  /** Those that no test uses; the one that has rested longest comes first. */
  readonly free: string[];
  readonly mongo: Promise<Mongo>;
  /** What a migrated database consists of. */
  collections: string | undefined;
}

const poolKey = Symbol.for("inference-service.test-databases");
const worker = globalThis as { [poolKey]?: Pool };

const withName = (address: string, database: string): string => {
  const url = new URL(address);
  url.pathname = `/${database}`;
  return url.href;
};

/** An empty database without collections. */
export const newDatabase = (address: string): string => withName(address, `t_${randomBase62(12)}`);

/** An empty migrated database for the running test, or for the file if none is running. */
export async function pooledDatabase(address: string): Promise<string> {
  const pool = (worker[poolKey] ??= { free: [], mongo: connect(address), collections: undefined });
  let taken: string | undefined;
  const giveBack = () => {
    if (taken !== undefined) pool.free.push(taken);
  };
  // Registered before anything uses the database, so it runs after all of that has ended.
  try {
    onTestFinished(giveBack);
  } catch {
    atEndOfFile(giveBack);
  }
  taken = (await reused(pool)) ?? (await migratedDatabase(pool, address));
  return taken;
}

const connect = (address: string) =>
  connectMongo(withName(address, "admin"), systemClock, createLogger("test", "silent"));

/** One database always rests for the length of a test, so that the last writes of a killed process precede the emptying. */
async function reused(pool: Pool): Promise<string | undefined> {
  while (pool.free.length > 1) {
    const uri = pool.free.shift() as string;
    if (await empty(pool, uri)) return uri;
  }
  return undefined;
}

async function migratedDatabase(pool: Pool, address: string): Promise<string> {
  const uri = newDatabase(address);
  await migrateDatabase(uri);
  pool.collections ??= await collectionsOf(await databaseOf(pool, uri));
  return uri;
}

const databaseOf = async ({ mongo }: Pool, uri: string) =>
  (await mongo).connection.getClient().db(new URL(uri).pathname.slice(1));

type Database = Awaited<ReturnType<typeof databaseOf>>;

async function collectionsOf(db: Database): Promise<string> {
  const found = await db.listCollections<mongoose.mongo.CollectionInfo>().toArray();
  const byName = found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return JSON.stringify(byName.map(({ name, type, options }) => [name, type, options]));
}

/** False if it cannot be used again: a test has changed its collections, or a transaction that nobody ends holds documents. */
async function empty(pool: Pool, uri: string): Promise<boolean> {
  const db = await databaseOf(pool, uri);
  if ((await collectionsOf(db)) !== pool.collections) return false;
  const names = (JSON.parse(pool.collections) as [string][]).map(([name]) => name);
  const emptied = names
    .filter((name) => name !== "migrations")
    .map(async (name) => {
      await db.command({ delete: name, deletes: [{ q: {}, limit: 0 }], maxTimeMS: 5_000, comment: ofTest });
      // A plan that was best for the documents of another test would be used for those of the next.
      await db.command({ planCacheClear: name });
    });
  return Promise.all(emptied).then(
    () => true,
    () => false,
  );
}
